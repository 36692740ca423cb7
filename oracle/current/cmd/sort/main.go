// sort reads lines of JSON: arrays of integers. For each it writes where the items stood before sort.Slice sorted them, as an array.
package main

import (
	"encoding/json"
	"errors"
	"io"
	"log"
	"os"
	"sort"
)

func main() {
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var ranks []int
		if err := in.Decode(&ranks); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			log.Fatal(err)
		}
		places := make([]int, len(ranks))
		for i := range places {
			places[i] = i
		}
		sort.Slice(places, func(i, j int) bool { return ranks[places[i]] < ranks[places[j]] })
		if err := out.Encode(places); err != nil {
			log.Fatal(err)
		}
	}
}
