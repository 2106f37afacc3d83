package insert

// An edit replaces text[pos:end] of a user's text. Edits stand in text order;
// several may insert at one position.
type edit struct {
	pos, end int32
	ref      int32 // always, filled: index in Plan.texts; argument: index in Insert.ArgKeys; key…: placeholders before it
	kind     editKind
}

type editKind uint8

const (
	always   editKind = iota // a fixed text
	filled                   // a fixed text, where the statement is filled
	key                      // a key
	keyComma                 // a key after a comma
	keySpace                 // a key after a space
	argument                 // a placeholder that may be a key
	numbered                 // what numbers the rows of a select
)

type span struct{ from, to int }

func (p *parser) edit(kind editKind, pos, end, ref int) {
	p.made = append(p.made, edit{int32(pos), int32(end), int32(ref), kind})
}

func (p *parser) insertText(kind editKind, pos int, text string) {
	p.replaceText(kind, pos, pos, text)
}

func (p *parser) replaceText(kind editKind, pos, end int, text string) {
	p.edit(kind, pos, end, len(p.texts))
	p.texts = append(p.texts, text)
}
