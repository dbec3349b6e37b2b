package archive

import (
	"fmt"
	"strings"
)

// Report is what an archive does not hold as it was.
type Report struct {
	special    group // FIFOs, sockets, devices
	unreadable group
	changed    group // written to, removed or replaced meanwhile
}

// group counts paths, and keeps the first.
type group struct {
	n     int
	first string
}

func (g *group) add(path string) {
	if g.n++; g.n == 1 {
		g.first = path
	}
}

// maxShown is how many bytes of a path are shown.
const maxShown = 48

// say tells of a group: how many, and of what.
func (g *group) say(what string) string {
	path := g.first
	if len(path) > maxShown {
		path = "..." + path[len(path)-maxShown:]
	}
	return fmt.Sprintf("%d %s (%q first)", g.n, what, path)
}

// String is text for who reads the archive, empty when there is nothing to say.
func (r Report) String() string {
	var parts []string
	for _, g := range []struct {
		group
		what string
	}{
		{r.special, "left out as FIFOs, sockets or devices"},
		{r.unreadable, "left out as unreadable"},
		{r.changed, "changed meanwhile, and are left out or mixed of before and after"},
	} {
		if g.n > 0 {
			parts = append(parts, g.say(g.what))
		}
	}
	return strings.Join(parts, "; ")
}
