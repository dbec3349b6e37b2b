package differential

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
)

// rule is one nonterminal of the grammar: its alternatives. Beyond maxDepth
// only those of flat are taken. A name in ‹› is another rule, or a special one.
type rule struct {
	flat []string
	deep []string
}

const maxDepth = 3

// generator writes scripts. Equal seeds give equal scripts.
type generator struct {
	*rand.Rand
	grammar   map[string]rule
	depth     int
	loops     int // around what is being written
	captures  int // command substitutions around it
	functions int // how many may be called: a function calls earlier ones only
	counters  int
}

func newGenerator(seed uint64) *generator {
	return &generator{Rand: rand.New(rand.NewPCG(seed, 0x6265727468)), grammar: grammar, functions: functionCount}
}

const functionCount = 4

var nonterminal = regexp.MustCompile(`‹([a-z]+)›`)

// expand writes out a template. ‹new› is the same fresh name all over it.
func (g *generator) expand(template string) string {
	fresh := ""
	return nonterminal.ReplaceAllStringFunc(template, func(s string) string {
		name := nonterminal.FindStringSubmatch(s)[1]
		if name == "new" {
			if fresh == "" {
				fresh = fmt.Sprint("i", g.counters)
				g.counters++
			}
			return fresh
		}
		return g.write(name)
	})
}

// write writes one instance of a rule. Nothing that takes several lines is in a
// command substitution: bash 5.2 loses semicolons there, after a here-document for
// one, and what it then makes of the rest is an error like those of the rule error.
func (g *generator) write(name string) string {
	if g.captures > 0 && (name == "compound" || name == "document") {
		name = "output"
	}
	if special, ok := specials[name]; ok {
		return special(g)
	}
	r, ok := g.grammar[name]
	if !ok {
		panic("no rule " + name)
	}
	n := len(r.flat)
	if g.depth < maxDepth {
		n += len(r.deep)
	}
	k := g.IntN(n)
	if k < len(r.flat) {
		return g.expand(r.flat[k])
	}
	g.depth++
	defer func() { g.depth-- }()
	return g.expand(r.deep[k-len(r.flat)])
}

// specials are what a context-free grammar can't say. They are set in init,
// since they refer to the grammar that refers to them.
var specials map[string]func(g *generator) string

func init() {
	specials = map[string]func(g *generator) string{
		"list":     list,
		"loop":     loop,
		"captured": captured,
		"function": function,
		"call":     call,
		"control":  control,
		"int":      func(g *generator) string { return fmt.Sprint(g.IntN(12) - 2) },
		"small":    func(g *generator) string { return fmt.Sprint(g.IntN(4)) },
		"status":   func(g *generator) string { return fmt.Sprint(g.IntN(256)) },
	}
}

// list is one to three statements, each on lines of its own: one may end with
// the body of a here-document.
func list(g *generator) string {
	var lines []string
	for range 1 + g.IntN(3) {
		lines = append(lines, g.write("statement"))
	}
	return strings.Join(lines, "\n")
}

// loop is a list within a loop.
func loop(g *generator) string {
	g.loops++
	defer func() { g.loops-- }()
	return list(g)
}

// captured is a list within a command substitution.
func captured(g *generator) string {
	g.captures++
	defer func() { g.captures-- }()
	return list(g)
}

// control leaves a loop, where there is one.
func control(g *generator) string {
	if g.loops == 0 {
		return "true"
	}
	return []string{"break", "continue", "break 1", fmt.Sprint("continue ", g.loops), fmt.Sprint("break ", g.loops)}[g.IntN(5)]
}

// function defines a function that calls earlier ones only: none runs for ever.
func function(g *generator) string {
	functions, loops := g.functions, g.loops
	defer func() { g.functions, g.loops = functions, loops }()
	g.functions, g.loops = g.IntN(max(1, functions)), 0
	return fmt.Sprintf(g.pick("f%d() {", "function f%d {", "f%d () {")+"\n%s\n%s\n%s\n}",
		g.functions, g.expand(g.pick("local l=‹bounded›", "local -i k=‹int›", "local -a la=(‹words›)", ":", "local v0=in v1")),
		g.write("list"), g.expand(g.pick("return ‹status›", "echo \"$l,$k,$1,$#\"", "echo \"${FUNCNAME[0]} ${la[*]}\"", "(( $# ))")))
}

func call(g *generator) string {
	if g.functions == 0 {
		return "echo none"
	}
	return g.expand(fmt.Sprintf("f%d ‹words›", g.IntN(g.functions)))
}

func (g *generator) pick(of ...string) string { return of[g.IntN(len(of))] }
