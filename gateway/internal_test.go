package gateway

// CloseWait is what a drain takes at most after its time-out.
const CloseWait = closeWait
