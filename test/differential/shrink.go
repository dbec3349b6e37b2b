package differential

import "slices"

// Shrink drops parts, commands and interruptions from s for as long as what is
// left still differs. It asks at most so many times.
func Shrink(s Script, differs func(Script) bool, most int) Script {
	for progress := true; progress; {
		progress = false
		for _, smaller := range reductions(s) {
			if most--; most < 0 {
				return s
			}
			if differs(smaller) {
				s, progress = smaller, true
				break
			}
		}
	}
	return s
}

// reductions are the scripts that lack one thing of s, the largest things
// first.
func reductions(s Script) []Script {
	var all []Script
	for i := range len(s.Parts) - 1 {
		r := s.clone()
		r.Parts = slices.Delete(r.Parts, i, i+1)
		all = append(all, r)
	}
	for i, p := range s.Parts {
		for j := range p.Commands {
			if len(p.Commands) > 1 {
				r := s.clone()
				r.Parts[i].Commands = slices.Delete(r.Parts[i].Commands, j, j+1)
				all = append(all, r)
			}
		}
		if len(p.Before) > 0 {
			r := s.clone()
			r.Parts[i].Before = nil
			all = append(all, r)
		}
	}
	return all
}

func (s Script) clone() Script {
	s.Parts = slices.Clone(s.Parts)
	for i := range s.Parts {
		s.Parts[i].Commands = slices.Clone(s.Parts[i].Commands)
	}
	return s
}
