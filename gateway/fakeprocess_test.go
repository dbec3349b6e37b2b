package gateway_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/berth-dev/berth/sandbox-agent/client"
)

// fakeProcess is a background process of a fake agent: it echoes its input.
type fakeProcess struct {
	request client.ProcessRequest
	output  string
	exit    *int
	inputs  []client.ProcessInput
	signals []string
	queries []string
}

var fakeStart = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func (p *fakeProcess) wire() client.Process {
	return client.Process{
		ID: p.request.ID, Kind: client.KindProcess, Command: p.request.Command, Terminal: p.request.Terminal != nil,
		Running: p.exit == nil, ExitCode: p.exit, Started: fakeStart, OutputEnd: int64(len(p.output)),
	}
}

// process answers what is asked about background processes.
func (a *fakeAgent) process(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	id, what, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/v1/processes"), "/"), "/")
	if id == "" {
		a.allProcesses(w, r)
		return
	}
	for _, p := range a.processes {
		if p.request.ID == id {
			p.serve(w, r, what)
			return
		}
	}
	agentError(w, http.StatusNotFound, "not_found", "no such process")
}

func (a *fakeAgent) allProcesses(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		list := client.ProcessList{Processes: []client.Process{}}
		for _, p := range a.processes {
			list.Processes = append(list.Processes, p.wire())
		}
		agentJSON(w, list)
		return
	}
	p := &fakeProcess{output: "started\n"}
	if err := json.NewDecoder(r.Body).Decode(&p.request); err != nil {
		agentError(w, http.StatusBadRequest, "bad_request", err.Error())
		return
	}
	for _, other := range a.processes {
		if other.request.ID == p.request.ID {
			agentJSON(w, other.wire())
			return
		}
	}
	a.processes = append(a.processes, p)
	agentJSON(w, p.wire())
}

func (p *fakeProcess) serve(w http.ResponseWriter, r *http.Request, what string) {
	switch what {
	case "output":
		p.queries = append(p.queries, r.URL.RawQuery)
		offset, _ := strconv.ParseInt(r.URL.Query().Get("offset"), 10, 64) // none is 0
		if offset < 0 {
			offset += int64(len(p.output))
		}
		offset = min(max(offset, 0), int64(len(p.output)))
		agentJSON(w, client.ProcessOutput{
			Output: p.output[offset:], Offset: offset, NextOffset: int64(len(p.output)), Running: p.exit == nil, ExitCode: p.exit,
		})
	case "input":
		var in client.ProcessInput
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			agentError(w, http.StatusBadRequest, "bad_request", err.Error())
			return
		}
		p.inputs = append(p.inputs, in)
		p.output += in.Data
		agentJSON(w, client.ProcessInputResult{Written: len(in.Data)})
	case "signal":
		var in struct{ Signal string }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			agentError(w, http.StatusBadRequest, "bad_request", err.Error())
			return
		}
		p.signals = append(p.signals, in.Signal)
		exit := 143
		p.exit = &exit
		w.WriteHeader(http.StatusNoContent)
	}
}

// started is the background processes that were started.
func (a *fakeAgent) started() []*fakeProcess {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]*fakeProcess(nil), a.processes...)
}
