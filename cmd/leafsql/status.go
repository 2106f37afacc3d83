package main

// Exit codes of all subcommands.
const (
	fine    = 0
	mend    = 1 // something needs a fix
	unclear = 2 // it could not be determined or done
)
