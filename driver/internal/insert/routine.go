package insert

// create reads CREATE.
func (p *parser) create() error {
	return p.pass()
}
