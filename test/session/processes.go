package session

import "context"

// Process is one of a session's background processes, as process_list gives it.
type Process struct {
	ID       string `json:"process_id"`
	Kind     string `json:"kind"`
	Command  string `json:"command"`
	Running  bool   `json:"running"`
	ExitCode *int   `json:"exit_code"`
}

// Output is what process_output gives: output from Offset on, and where to go on.
type Output struct {
	Output     string `json:"output"`
	Offset     int64  `json:"offset"`
	NextOffset int64  `json:"next_offset"`
	Running    bool   `json:"running"`
	ExitCode   *int   `json:"exit_code"`
}

// Start starts a background process, with a terminal or without, and gives its ID.
func (s *Session) Start(ctx context.Context, command string, terminal bool) (string, error) {
	arguments := map[string]any{"command": command, "background": true}
	if terminal {
		arguments["terminal"] = true
	}
	var result Result
	err := s.Call(ctx, "bash", arguments, &result)
	return result.ProcessID, err
}

// Processes lists the session's background processes.
func (s *Session) Processes(ctx context.Context) ([]Process, error) {
	var list struct {
		Processes []Process `json:"processes"`
	}
	err := s.Call(ctx, "process_list", map[string]any{}, &list)
	return list.Processes, err
}

// Output gives a process's output from offset on. It waits for so many seconds
// if there is none yet.
func (s *Session) Output(ctx context.Context, id string, offset int64, wait int) (Output, error) {
	var output Output
	err := s.Call(ctx, "process_output", map[string]any{"process_id": id, "offset": offset, "wait": wait}, &output)
	return output, err
}

// Input gives a process something to read.
func (s *Session) Input(ctx context.Context, id string, input map[string]any) error {
	arguments := map[string]any{"process_id": id}
	for name, value := range input {
		arguments[name] = value
	}
	return s.Call(ctx, "process_input", arguments, &struct{}{})
}

// Signal sends a process a signal.
func (s *Session) Signal(ctx context.Context, id, signal string) error {
	return s.Call(ctx, "process_signal", map[string]any{"process_id": id, "signal": signal}, &struct{}{})
}
