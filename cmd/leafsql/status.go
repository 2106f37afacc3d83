package main

// Exit codes of all subcommands.
const (
	exitOK       = 0
	exitProblems = 1 // something needs a fix
	exitFailure  = 2 // the command failed
)
