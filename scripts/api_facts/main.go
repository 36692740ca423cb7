// Prints the facts of the Kubernetes API that its OpenAPI documents lack, as one JSON object: for every Go type that the
// API serves, its fields with JSON name, protobuf number, Go type and the flags that decide which empty values are shown;
// for every kind, the columns of its table. No descriptions. Run by scripts/make_api_facts.py; not part of the package.
package main

import (
	"encoding/json"
	"os"
	"reflect"
	"strconv"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	aggregation "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kubernetes/pkg/printers"
	"k8s.io/kubernetes/pkg/printers/internalversion"
)

type field struct {
	Name       string   `json:"name"`
	GoName     string   `json:"goName,omitempty"`
	Number     int      `json:"number,omitempty"`
	Wire       string   `json:"wire,omitempty"`
	Type       string   `json:"type"`
	GoType     string   `json:"goType"`
	Containers []string `json:"containers,omitempty"`
	OmitEmpty  bool     `json:"omitEmpty,omitempty"`
	OmitZero   bool     `json:"omitZero,omitempty"`
	Inline     bool     `json:"inline,omitempty"`
}

type column struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Format   string `json:"format,omitempty"`
	Priority int32  `json:"priority,omitempty"`
}

type tables struct{ columns map[string][]column }

func (t *tables) TableHandler(definitions []metav1.TableColumnDefinition, printFunc interface{}) error {
	columns := []column{}
	for _, each := range definitions {
		columns = append(columns, column{each.Name, each.Type, each.Format, each.Priority})
	}
	kind := reflect.TypeOf(printFunc).In(0).Elem()
	name := strings.TrimPrefix(kind.PkgPath(), "k8s.io/kubernetes/pkg/apis/") + "." + kind.Name()
	t.columns[name] = columns
	return nil
}

var types = map[string][]field{}

func typeName(t reflect.Type) string {
	if t.PkgPath() == "" {
		return t.String()
	}
	return t.PkgPath() + "." + t.Name()
}

// core strips pointers, slices and maps, and returns what is left with the containers from the outside in.
func core(t reflect.Type) (reflect.Type, []string) {
	containers := []string{}
	for {
		switch {
		case t.Kind() == reflect.Pointer:
			containers = append(containers, "pointer")
		case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
			return t, containers
		case t.Kind() == reflect.Slice:
			containers = append(containers, "list")
		case t.Kind() == reflect.Map:
			containers = append(containers, "map")
		default:
			return t, containers
		}
		t = t.Elem()
	}
}

func describe(t reflect.Type) {
	name := typeName(t)
	if _, done := types[name]; done || t.Kind() != reflect.Struct {
		return
	}
	types[name] = []field{}
	fields := []field{}
	for i := 0; i < t.NumField(); i++ {
		member := t.Field(i)
		tag, tagged := member.Tag.Lookup("json")
		if !tagged || tag == "-" || !member.IsExported() {
			continue
		}
		parts := strings.Split(tag, ",")
		base, containers := core(member.Type)
		entry := field{Name: parts[0], GoName: member.Name, Type: typeName(base), GoType: member.Type.String(), Containers: containers}
		if base.Kind() != reflect.Struct && base.PkgPath() != "" {
			entry.Type = base.Kind().String()
		}
		for _, flag := range parts[1:] {
			entry.OmitEmpty = entry.OmitEmpty || flag == "omitempty"
			entry.OmitZero = entry.OmitZero || flag == "omitzero"
			entry.Inline = entry.Inline || flag == "inline"
		}
		entry.Inline = entry.Inline || (member.Anonymous && parts[0] == "")
		if proto := member.Tag.Get("protobuf"); proto != "" && proto != "-" {
			bits := strings.Split(proto, ",")
			entry.Wire = bits[0]
			if len(bits) > 1 {
				entry.Number, _ = strconv.Atoi(bits[1])
			}
		}
		fields = append(fields, entry)
		describe(base)
	}
	types[name] = fields
}

func main() {
	_ = apiextensions.AddToScheme(scheme.Scheme)
	_ = aggregation.AddToScheme(scheme.Scheme)
	kinds := map[string]string{}
	for kind, t := range scheme.Scheme.AllKnownTypes() {
		if kind.Version == "__internal" {
			continue
		}
		describe(t)
		key := kind.Version + "/" + kind.Kind
		if kind.Group != "" {
			key = kind.Group + "/" + key
		}
		kinds[key] = typeName(t)
	}
	found := &tables{map[string][]column{}}
	internalversion.AddHandlers(found)
	var _ printers.PrintHandler = found
	out := json.NewEncoder(os.Stdout)
	_ = out.Encode(map[string]any{"types": types, "kinds": kinds, "columns": found.columns})
}
