// Package supervise starts background processes as children of another process
// (docs/adr/0013-background-processes-have-a-supervisor.md).
//
// A command that is killed takes everything along that descends from the agent
// and is younger than the command. What a background process starts later, and
// what thereby loses its parent, would be among that. So background processes
// descend from a supervisor, older than any command that can be killed after
// it, to which their orphans fall: the agent's own program, as `berth-agent
// supervise`, started with the first process that needs it.
//
// Supervisor is the agent's side, Run the other. They speak over a pair of
// sockets that keep messages apart (SOCK_SEQPACKET); each message is one small
// JSON object, and descriptors travel beside it. What is to be started is in a
// memory file, since it may be larger than a message. Neither side believes the
// other beyond that form: the supervisor's user is the session's.
package supervise
