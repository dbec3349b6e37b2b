package differential

import (
	"fmt"
	"strings"
)

// Script is what both sides run.
type Script struct {
	Seed  uint64
	Shell []string // what runs the reference; its next argument is the script
	Sh    bool     // it is one for a plain sh
	Path  string   // PATH of either side
	Parts []Part   // the last one prints the state
}

// Part is what one call of a session runs: complete commands.
type Part struct {
	Commands []string
	Stdin    string
	// Before are run before it in the session alone. They leave nothing but $?.
	Before []Interruption
}

// Text is the part as it is written.
func (p Part) Text() string { return strings.Join(p.Commands, "\n") }

// Interruption is a command whose shell does not survive it, or that is no
// command at all.
type Interruption struct {
	Command string
	Timeout float64 // seconds, for one that runs out of time
	Cancel  bool    // cancel it once it has opened the gate
	Status  int     // what it must give
}

const (
	fewestCommands = 4
	mostCommands   = 14
)

// Generate returns the script of a seed.
func Generate(seed uint64) Script {
	g := newGenerator(seed)
	s := Script{Seed: seed, Path: defaultPath, Shell: []string{"bash", "--norc", "--noprofile", "-c"}}
	s.Parts = []Part{{Commands: []string{"declare -A m0 m1"}}}
	interrupted := false
	n := fewestCommands + g.IntN(mostCommands-fewestCommands+1)
	before := func() (before []Interruption) {
		if g.IntN(4) == 0 {
			interrupted = true
			before = append(before, interruption(g))
		}
		return before
	}
	for n > 0 {
		if g.IntN(12) == 0 {
			s.Parts = append(s.Parts, Part{Commands: []string{"set -e"}})
			for range 1 + g.IntN(3) {
				s.Parts = append(s.Parts, Part{Commands: []string{g.write("exempt")}, Before: before()})
			}
			s.Parts = append(s.Parts, Part{Commands: []string{"set +e"}, Before: before()})
		}
		p := Part{Before: before()}
		for range 1 + g.IntN(3) {
			rule := "top"
			if !interrupted && g.IntN(20) == 0 {
				rule = "error"
			}
			p.Commands = append(p.Commands, g.write(rule))
			n--
		}
		if g.IntN(3) == 0 {
			p.Stdin = g.pick("a b c\n", "one\ntwo\\\nthree\n", "no newline", "x,y,z", "\x01\x02é\r\n", strings.Repeat("0123456789\n", 20))
		}
		s.Parts = append(s.Parts, p)
	}
	s.Parts = append(s.Parts, Part{Commands: []string{stateDump}})
	return s
}

// lost is state that must not outlive its command.
const lost = `v0=lost; a0=(lost); m9=lost; f0() { echo lost; }; cd /; umask 0; set -- lost; exec 5>&- 6<&-; trap - USR1 EXIT ERR; set -f; shopt -u extglob; alias q0='echo lost'; unset a1; `

func interruption(g *generator) Interruption {
	spoil := ""
	if g.IntN(2) == 0 {
		spoil = lost
	}
	switch g.IntN(8) {
	case 0:
		return Interruption{Command: spoil + g.pick("sleep 99", "while :; do :; done", "(sleep 99 & wait)", "read -r <"+gate), Timeout: 0.03, Status: 137}
	case 1:
		return Interruption{Command: spoil + "echo open >" + gate + g.pick("; sleep 99", "; while :; do :; done", "; cat <(sleep 99)"), Cancel: true, Status: 137}
	case 2, 3:
		status := g.IntN(256)
		return Interruption{Command: spoil + fmt.Sprint("exit ", status), Status: status}
	case 4:
		return Interruption{Command: spoil + g.pick("exec true", "exec sh -c :"), Status: 0}
	case 5:
		return Interruption{Command: spoil + "exec false", Status: 1}
	case 6:
		return Interruption{Command: spoil + "kill -9 $BASHPID", Status: 137}
	}
	// Not with state before it: bash runs the lines before one that it can't parse.
	return Interruption{Command: g.pick("}", "echo 'abc", "if true", "( true", "done", "a b )", "case x in", "echo \"${v0\n\"x", ";;", "f() {"), Status: 2}
}

// gate stands for the path of a FIFO outside of what is compared.
const gate = "@GATE@"

// String is the script as a reader needs it to see what went wrong.
func (s Script) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# seed %d\n", s.Seed)
	for i, p := range s.Parts[:len(s.Parts)-1] {
		for _, in := range p.Before {
			fmt.Fprintf(&b, "#    interruption, status %d: %s\n", in.Status, in.Command)
		}
		fmt.Fprintf(&b, "# -- part %d", i)
		if p.Stdin != "" {
			fmt.Fprintf(&b, ", stdin %q", p.Stdin)
		}
		fmt.Fprintf(&b, "\n%s\n", p.Text())
	}
	return b.String()
}
