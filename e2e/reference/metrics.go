// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Metric is one that a program shows.
type Metric struct {
	Name, Kind, Help string
	Labels           []string
}

// Metrics returns the metrics that the code under the folders makes, by name. One that is written in a way that cannot
// be read here is an error: it would be missing without a word.
func Metrics(folders ...string) (found []Metric, err error) {
	for _, folder := range folders {
		err = errors.Join(err, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.IsDir() {
				return err
			}
			inPackage, err := metricsOf(path)
			found = append(found, inPackage...)
			return err
		}))
	}
	slices.SortFunc(found, func(a, b Metric) int { return cmp.Compare(a.Name, b.Name) })
	return found, err
}

// scan is a package while it is read.
type scan struct {
	set       *token.FileSet
	constants map[string]string
	makers    map[string]maker // local functions that make a metric of what they are given
	found     []Metric
	faults    []error
}

// maker is a function with a name and a help among its parameters.
type maker struct {
	Metric
	name, help, labels int // the parameters' places, -1 for what is fixed
}

func metricsOf(folder string) ([]Metric, error) {
	s := &scan{set: token.NewFileSet(), constants: map[string]string{}, makers: map[string]maker{}}
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(s.set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
		ast.Inspect(file, s.constant)
	}
	for _, file := range files {
		ast.Inspect(file, s.function)
	}
	for _, file := range files {
		ast.Inspect(file, s.metric)
	}
	return s.found, errors.Join(s.faults...)
}

func (s *scan) constant(n ast.Node) bool {
	if spec, ok := n.(*ast.ValueSpec); ok {
		for i, name := range spec.Names {
			if i < len(spec.Values) {
				if text, ok := s.text(spec.Values[i]); ok {
					s.constants[name.Name] = text
				}
			}
		}
	}
	return true
}

// function notes `name := func(…) { … prometheus.XOpts{Name: parameter} … }`.
func (s *scan) function(n ast.Node) bool {
	assigned, ok := n.(*ast.AssignStmt)
	if !ok || len(assigned.Lhs) != 1 || len(assigned.Rhs) != 1 {
		return true
	}
	name, isName := assigned.Lhs[0].(*ast.Ident)
	function, isFunction := assigned.Rhs[0].(*ast.FuncLit)
	if !isName || !isFunction {
		return true
	}
	var parameters []string
	for _, field := range function.Type.Params.List {
		for _, p := range field.Names {
			parameters = append(parameters, p.Name)
		}
	}
	place := func(e ast.Expr) int {
		if id, ok := e.(*ast.Ident); ok {
			return slices.Index(parameters, id.Name)
		}
		return -1
	}
	ast.Inspect(function.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || !isPrometheus(call.Fun, "New") || len(call.Args) == 0 {
			return true
		}
		kind, fields := options(call.Args[0])
		if fields["Name"] == nil || place(fields["Name"]) < 0 {
			return true
		}
		namespace, _ := s.text(fields["Namespace"])
		m := maker{Metric{Name: namespace, Kind: kind}, place(fields["Name"]), place(fields["Help"]), -1}
		if len(call.Args) > 1 {
			m.labels = place(call.Args[1])
			m.Labels = s.texts(call.Args[1:])
		}
		s.makers[name.Name] = m
		return true
	})
	return true
}

func (s *scan) metric(n ast.Node) bool {
	call, ok := n.(*ast.CallExpr)
	if !ok || len(call.Args) == 0 {
		return true
	}
	if id, ok := call.Fun.(*ast.Ident); ok {
		if m, ok := s.makers[id.Name]; ok {
			s.made(m, call)
		}
		return true
	}
	if !isPrometheus(call.Fun, "New") {
		return true
	}
	if call.Fun.(*ast.SelectorExpr).Sel.Name == "NewDesc" {
		s.add(call, "gauge", call.Args[0], call.Args[1], nil, s.texts(call.Args[2:3]))
		return true
	}
	kind, fields := options(call.Args[0])
	if id, ok := fields["Name"].(*ast.Ident); ok && s.constants[id.Name] == "" {
		return true // within a maker
	}
	if kind != "" {
		s.add(call, kind, fields["Name"], fields["Help"], fields["Namespace"], s.texts(call.Args[1:]))
	}
	return true
}

func (s *scan) made(m maker, call *ast.CallExpr) {
	help := ast.Expr(nil)
	if m.help >= 0 && m.help < len(call.Args) {
		help = call.Args[m.help]
	}
	labels := m.Labels
	if m.labels >= 0 && m.labels < len(call.Args) {
		labels = s.texts(call.Args[m.labels:])
	}
	s.add(call, m.Kind, call.Args[m.name], help, &ast.BasicLit{Kind: token.STRING, Value: strconv.Quote(m.Name)}, labels)
}

func (s *scan) add(call *ast.CallExpr, kind string, name, help, namespace ast.Expr, labels []string) {
	text, named := s.text(name)
	what, helped := s.text(help)
	before, spaced := s.text(namespace)
	if !named || !helped || namespace != nil && !spaced {
		s.faults = append(s.faults, fmt.Errorf("%v: this metric's name and help cannot be read; write them as text", s.set.Position(call.Pos())))
		return
	}
	if before != "" {
		text = before + "_" + text
	}
	s.found = append(s.found, Metric{text, kind, what, labels})
}

// options reads prometheus.XOpts{…}.
func options(e ast.Expr) (kind string, fields map[string]ast.Expr) {
	literal, ok := e.(*ast.CompositeLit)
	if !ok || !isPrometheus(literal.Type, "") || !strings.HasSuffix(literal.Type.(*ast.SelectorExpr).Sel.Name, "Opts") {
		return "", nil
	}
	fields = map[string]ast.Expr{}
	for _, element := range literal.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			fields[pair.Key.(*ast.Ident).Name] = pair.Value
		}
	}
	return strings.ToLower(strings.TrimSuffix(literal.Type.(*ast.SelectorExpr).Sel.Name, "Opts")), fields
}

func isPrometheus(e ast.Expr, prefix string) bool {
	selector, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	pkg, ok := selector.X.(*ast.Ident)
	return ok && pkg.Name == "prometheus" && strings.HasPrefix(selector.Sel.Name, prefix)
}

func (s *scan) text(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.Ident:
		text, ok := s.constants[e.Name]
		return text, ok
	case *ast.BinaryExpr:
		left, ok := s.text(e.X)
		right, also := s.text(e.Y)
		return left + right, ok && also
	}
	return "", false
}

// texts are the strings in expressions, lists of strings among them.
func (s *scan) texts(all []ast.Expr) (texts []string) {
	for _, e := range all {
		if list, ok := e.(*ast.CompositeLit); ok {
			texts = append(texts, s.texts(list.Elts)...)
		} else if text, ok := s.text(e); ok {
			texts = append(texts, text)
		}
	}
	return texts
}
