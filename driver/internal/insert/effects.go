package insert

// effects refuses a select that would do something twice if it were counted.
func (w *writer) effects(what string) error {
	return refuse(w.Table, "its rows have to be counted first, and "+what+" must not run twice", "select the rows and insert them")
}

// sideEffect says whether the word calls something that is not to run twice.
func (p *parser) sideEffect() bool {
	switch p.text[p.tok.Pos] | 0x20 {
	case 's':
		return p.isAny("sleep", "setval", "source_pos_wait") && p.peek().Kind == '('
	case 'g':
		return p.is("get_lock") && p.peek().Kind == '('
	case 'r':
		return p.isAny("release_lock", "release_all_locks") && p.peek().Kind == '('
	case 'n':
		return p.is("nextval") && (p.peek().Kind == '(') || p.is("next") && p.peekIs("value")
	case 'm':
		return p.isAny("master_pos_wait", "master_gtid_wait") && p.peek().Kind == '('
	case 'w':
		return p.isAny("wait_for_executed_gtid_set", "wait_until_sql_thread_after_gtids") && p.peek().Kind == '('
	case 'b':
		return p.is("benchmark") && p.peek().Kind == '('
	case 'i':
		return p.is("into")
	case 'l':
		if p.is("last_insert_id") {
			s := p.s
			return s.Next().Kind == '(' && s.Next().Kind != ')'
		}
	}
	return false
}
