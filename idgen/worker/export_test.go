package worker

// OpenFile gives the local file's Slots to tests from outside.
func OpenFile(dir string, worker int) (Slots, error) { return openFile(dir, worker) }
