// Records what kubectl's path (sigs.k8s.io/yaml, then Kubernetes' JSON numbers) makes of YAML texts.
//
//	cd scripts/record_yaml_answers && GOFLAGS=-mod=mod go run . ../../tests/formats/data/yaml_answers.json
//
// The file is a JSON object; every object in its list "cases" has a "text" and gets "value" or "error" written.
package main

import (
	"bytes"
	"encoding/json"
	"log"
	"os"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

type answer struct {
	Text  string          `json:"text"`
	Value json.RawMessage `json:"value,omitempty"`
	Error string          `json:"error,omitempty"`
}

type file struct {
	Recorded string   `json:"recorded"`
	Cases    []answer `json:"cases"`
}

func record(text string) answer {
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return answer{Text: text, Error: err.Error()}
	}
	var value any
	if err := utiljson.Unmarshal(data, &value); err != nil {
		return answer{Text: text, Error: err.Error()}
	}
	again, err := json.Marshal(value)
	if err != nil {
		return answer{Text: text, Error: err.Error()}
	}
	return answer{Text: text, Value: again}
}

func main() {
	path := os.Args[1]
	data, err := os.ReadFile(path)
	if err != nil {
		log.Fatal(err)
	}
	var content file
	if err := json.Unmarshal(data, &content); err != nil {
		log.Fatal(err)
	}
	content.Recorded = "sigs.k8s.io/yaml v1.6.0, k8s.io/apimachinery v0.36.3"
	for index, each := range content.Cases {
		content.Cases[index] = record(each.Text)
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(content); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
		log.Fatal(err)
	}
}
