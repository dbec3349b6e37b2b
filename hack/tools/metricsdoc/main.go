// Command metricsdoc writes a page of the metrics that Go sources define.
//
//	metricsdoc DIR... > docs/metrics.md
//
// It reads the sources, so a metric is found wherever it is made: as a call such
// as prometheus.NewCounterVec(prometheus.CounterOpts{Name: ..., Help: ...},
// []string{...}) whose name, help and labels are literals.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

type metric struct{ name, kind, help, labels string }

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: metricsdoc DIR...")
		os.Exit(2)
	}
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "metricsdoc: %v\n", err)
		os.Exit(1)
	}
}

func run(dirs []string, out io.Writer) error {
	fmt.Fprint(out, "# Metrics\n\nGenerated from the sources. Labels are closed sets: never a session, a pod or a user.\n"+
		"Both programs also export Go's and the process's own metrics; the controller, controller-runtime's.\n")
	for _, dir := range dirs {
		metrics, err := find(dir)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "\n## %s\n\n| metric | kind | labels | |\n|---|---|---|---|\n", filepath.Base(dir))
		for _, m := range metrics {
			fmt.Fprintf(out, "| `%s` | %s | %s | %s |\n", m.name, m.kind, m.labels, m.help)
		}
	}
	return nil
}

// find gives the metrics of all sources below a folder, by name.
func find(dir string) ([]metric, error) {
	var metrics []metric
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for node := range ast.Preorder(file) {
			call, ok := node.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				continue
			}
			m, ok := read(call)
			if ok && (m.name == "" || m.help == "") {
				return fmt.Errorf("%s: a metric whose Name or Help is no literal", path)
			}
			if ok {
				metrics = append(metrics, m)
			}
		}
		return nil
	})
	slices.SortFunc(metrics, func(a, b metric) int { return strings.Compare(a.name, b.name) })
	return metrics, err
}

// read gives the metric that a call makes, if it makes one.
func read(call *ast.CallExpr) (metric, bool) {
	options, ok := call.Args[0].(*ast.CompositeLit)
	if !ok {
		return metric{}, false
	}
	selector, ok := options.Type.(*ast.SelectorExpr)
	if !ok || !slices.Contains([]string{"CounterOpts", "GaugeOpts", "HistogramOpts", "SummaryOpts"}, selector.Sel.Name) {
		return metric{}, false
	}
	m := metric{kind: strings.ToLower(strings.TrimSuffix(selector.Sel.Name, "Opts"))}
	for _, element := range options.Elts {
		pair, ok := element.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		switch key, _ := pair.Key.(*ast.Ident); key.Name {
		case "Name":
			m.name = text(pair.Value)
		case "Help":
			m.help = text(pair.Value)
		}
	}
	if len(call.Args) > 1 {
		if list, ok := call.Args[1].(*ast.CompositeLit); ok {
			var labels []string
			for _, label := range list.Elts {
				labels = append(labels, "`"+text(label)+"`")
			}
			m.labels = strings.Join(labels, ", ")
		}
	}
	return m, true
}

// text is the value of a string literal, or of a sum of them.
func text(expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.BasicLit:
		if s, err := strconv.Unquote(e.Value); err == nil {
			return s
		}
	case *ast.BinaryExpr:
		return text(e.X) + text(e.Y)
	}
	return ""
}
