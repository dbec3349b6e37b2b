package files

import (
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/berth-dev/berth/sandbox-agent/wire"
)

// glob is a pattern of relative paths; the zero value matches all.
type glob struct {
	pattern string
	// parts are the pattern's, one for each directory; nil if it is not so simple: a
	// brace may stand for several.
	parts []string
	// alternatives is how many patterns without braces it stands for, or more.
	alternatives int
	// width is the length in bytes of its longest part or, as a brace may join parts,
	// of the longest pattern that it stands for.
	width int
}

// shortPart is how long a part may be, in bytes, that is tried at each byte of a path
// at the cost of one step.
const shortPart = 16

// cost is what it takes to match a path: steps through it, at most. Each
// alternative begins anew, and what follows a * is tried at each byte.
func (g glob) cost(path string) int {
	if g.pattern == "" {
		return 0
	}
	return g.alternatives * len(path) * (1 + g.width/shortPart)
}

func parseGlob(pattern string) (glob, error) {
	if len(pattern) > wire.MaxGlob {
		return glob{}, refuse(ErrRequest, "glob: longer than %d bytes", wire.MaxGlob)
	}
	pattern = strings.TrimPrefix(pattern, "./")
	switch {
	case strings.HasPrefix(pattern, "/"):
		return glob{}, refuse(ErrRequest, "glob: give one relative to the directory that is listed, as **/*.go")
	case malformed(pattern):
		return glob{}, refuse(ErrRequest, "glob: %s is no pattern: * ? [a-z] {a,b} and ** are known, \\ before them makes them plain", quote(pattern))
	case alternatives(pattern) > wire.MaxGlobAlternatives:
		return glob{}, refuse(ErrRequest, "glob: its braces stand for more than %d patterns", wire.MaxGlobAlternatives)
	}
	g := glob{pattern: pattern, alternatives: alternatives(pattern), width: longest(pattern)}
	parts := strings.Split(pattern, "/")
	if pattern == "" || strings.Contains(pattern, "{") {
		return g, nil
	}
	g.width = 0
	for _, part := range parts {
		g.width = max(g.width, len(part))
	}
	if !slices.ContainsFunc(parts, notSimple) {
		g.parts = parts
	}
	return g, nil
}

func malformed(pattern string) bool { return !doublestar.ValidatePattern(pattern) }

func notSimple(part string) bool {
	return malformed(part) || part != "**" && strings.Contains(part, "**")
}

// alternatives is how many patterns without braces a pattern stands for, or more.
func alternatives(pattern string) int {
	product, commas := 1, 0
	for _, c := range pattern {
		switch c {
		case ',':
			commas++
		case '}':
			product *= commas + 1
			commas = 0
		}
		if product > wire.MaxGlobAlternatives {
			break
		}
	}
	return product
}

// longest is the length in bytes of the longest pattern without braces that a valid
// pattern stands for.
func longest(pattern string) int {
	type brace struct{ longest, last int } // of its alternatives
	open := []brace{{}}
	for i := 0; i < len(pattern); i++ {
		in := &open[len(open)-1]
		switch c := pattern[i]; {
		case c == '\\':
			i++
			in.last += 2
		case c == '{':
			open = append(open, brace{})
		case c == ',' && len(open) > 1:
			in.longest, in.last = max(in.longest, in.last), 0
		case c == '}' && len(open) > 1:
			open = open[:len(open)-1]
			open[len(open)-1].last += max(in.longest, in.last)
		default:
			in.last++
		}
	}
	return open[0].last
}

// depth is how deep paths can be that match.
func (g glob) depth() int {
	switch {
	case g.pattern == "":
		return 1
	case g.parts == nil || slices.Contains(g.parts, "**"):
		return wire.MaxListDepth
	}
	return len(g.parts)
}

func (g glob) match(path string) bool {
	return g.pattern == "" || doublestar.MatchUnvalidated(g.pattern, path)
}

// enters tells whether what is in a directory, by its names from the listed one
// on, may match. Directories whose names begin with a dot it enters if hidden is
// set, or if it names them.
func (g glob) enters(names []string, hidden bool) bool {
	last := names[len(names)-1]
	if strings.HasPrefix(last, ".") && !hidden && !g.namesHidden(last) {
		return false
	}
	for i, name := range names {
		if i >= len(g.parts) || g.parts[i] == "**" {
			return len(g.parts) == 0 || i < len(g.parts)
		}
		if i == len(g.parts)-1 || !doublestar.MatchUnvalidated(g.parts[i], name) {
			return false
		}
	}
	return true
}

func (g glob) namesHidden(name string) bool {
	for _, part := range g.parts {
		if strings.HasPrefix(part, ".") && doublestar.MatchUnvalidated(part, name) {
			return true
		}
	}
	return false
}
