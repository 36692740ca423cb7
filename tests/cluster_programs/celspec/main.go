// Command celspec runs the conformance tests of cel-spec in Kubernetes' own CEL environment, and prints each outcome as a line of JSON.
//
// It shows where Kubernetes departs from cel-spec (tests/cel/departures.txt). Its argument is the folder of the .textproto files.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	celpb "cel.dev/expr"
	_ "cel.dev/expr/conformance/proto2"
	_ "cel.dev/expr/conformance/proto3"
	tests "cel.dev/expr/conformance/test"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	exprpb "google.golang.org/genproto/googleapis/api/expr/v1alpha1"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
)

func main() {
	base := environment.MustBaseEnvSet(version.MustParseGeneric("1.36.0"))
	files, _ := filepath.Glob(os.Args[1] + "/*.textproto")
	sort.Strings(files)
	w := bufio.NewWriter(os.Stdout)
	defer w.Flush()
	seen := map[string]int{}
	for _, f := range files {
		data, _ := os.ReadFile(f)
		var file tests.SimpleTestFile
		if err := prototext.Unmarshal(data, &file); err != nil {
			fmt.Fprintln(os.Stderr, f, err)
			continue
		}
		for _, s := range file.Section {
			for _, t := range s.Test {
				r := runOne(base, t)
				place := strings.TrimSuffix(filepath.Base(f), ".textproto") + "/" + s.Name + "/" + t.Name
				seen[place]++
				if seen[place] > 1 {
					place = fmt.Sprintf("%s#%d", place, seen[place])
				}
				r["place"] = place
				b, _ := json.Marshal(r)
				w.Write(b)
				w.WriteByte('\n')
			}
		}
	}
}

func runOne(base *environment.EnvSet, t *tests.SimpleTest) (r map[string]any) {
	r = map[string]any{}
	defer func() {
		if p := recover(); p != nil {
			r["panic"] = fmt.Sprint(p)
		}
	}()
	opts := []cel.EnvOption{}
	for _, d := range t.TypeEnv {
		b, _ := proto.Marshal(d)
		var e exprpb.Decl
		proto.Unmarshal(b, &e)
		o, err := cel.ExprDeclToDeclaration(&e)
		if err != nil {
			r["env"] = err.Error()
			return
		}
		opts = append(opts, o)
	}
	set, err := base.Extend(environment.VersionedOptions{IntroducedVersion: version.MajorMinor(1, 0), EnvOptions: opts})
	if err != nil {
		r["env"] = err.Error()
		return
	}
	env := set.NewExpressionsEnv()
	ast, iss := env.Compile(t.Expr)
	if iss.Err() != nil {
		r["compile"] = iss.Err().Error()
		return
	}
	r["type"] = ast.OutputType().String()
	prg, err := env.Program(ast)
	if err != nil {
		r["program"] = err.Error()
		return
	}
	vars := map[string]any{}
	for k, v := range t.Bindings {
		b, _ := proto.Marshal(v.GetValue())
		var e celpb.Value
		proto.Unmarshal(b, &e)
		x, err := cel.ProtoAsValue(types.DefaultTypeAdapter, &e)
		if err != nil {
			r["env"] = err.Error()
			return
		}
		vars[k] = x
	}
	out, _, err := prg.Eval(vars)
	if err != nil {
		r["run"] = err.Error()
		return
	}
	v, err := cel.ValueAsProto(ref.Val(out))
	if err != nil {
		r["value"] = fmt.Sprint(out)
		r["type_of_value"] = out.Type().TypeName()
		return
	}
	want := t.GetValue()
	if tr := t.GetTypedResult(); tr != nil {
		want = tr.Result
	}
	r["match"] = want != nil && proto.Equal(v, want)
	b, _ := prototext.Marshal(v)
	r["value"] = string(b)
	return
}
