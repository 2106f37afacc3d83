package insert

// load reads LOAD DATA and LOAD XML.
func (p *parser) load() error {
	p.next()
	if !p.isAny("data", "xml") {
		return p.pass()
	}
	for !p.atEnd() {
		if !p.accept("into") {
			p.next()
			continue
		}
		if !p.accept("table") || !p.atName() && p.tok.Kind != '.' {
			continue
		}
		t, _, err := p.target()
		if err != nil {
			return err
		}
		if t != nil {
			return refuse(t, "LOAD DATA reads rows that only the server sees", "load into another table and INSERT … SELECT from it")
		}
	}
	return nil
}
