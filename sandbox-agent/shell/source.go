package shell

import (
	_ "embed"
	"strings"
)

//go:embed loop.bash
var loopSource string

//go:embed spare.bash
var spareSource string

//go:embed eval.bash
var evalSource string

//go:embed settings.bash
var settingsSource string

// loop is what a resident shell evaluates, on one line.
var loop = strings.NewReplacer("SPARE", oneLine(spareSource), "EVAL", oneLine(evalSource), "SETTINGS", oneLine(settingsSource)).Replace(oneLine(loopSource))

func oneLine(source string) string {
	var code []string
	for line := range strings.Lines(source) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			code = append(code, line)
		}
	}
	return strings.Join(code, " ")
}

// starter hides the descriptors of the protocol from commands, and reads the
// loop: as an argument it would fill every listing of processes. Bash saves a
// descriptor that a group closes from 10 up and marks it close-on-exec, and a
// copy of one that is marked so is marked too. What follows the loop in the memory
// file restores what is known of a shell before this one.
const starter = `{ exec 210<&10 211<&11 212>&12 213<&13; } 200<&- 201<&- 202>&- 203<&-; ` +
	`exec 200<&- 201<&- 202>&- 203<&-; ` +
	`builtin mapfile -d '' -t -u 211 __berth_loop; builtin eval "${__berth_loop[1]-}"; ` +
	`unset -f builtin exec; unset '__berth_loop[1]'; builtin eval "$__berth_loop"`
