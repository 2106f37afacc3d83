package insert

// stored reads PREPARE … FROM and EXECUTE IMMEDIATE.
func (p *parser) stored() error {
	return p.pass()
}
