package insert

import (
	"strings"

	"github.com/leafsql/leafsql/driver/internal/lex"
)

// What pieces of SQL have to do with what is around them: expressions with the
// statements before and after, stored programs with tables.

// touches is what an expression has to do with what changes from one statement
// to the next, and from one expression to the next. A statement that runs as
// several must not tell the difference.
type touches struct {
	before    string // what it calls that tells of the statement before or of the transaction, such as ROW_COUNT() and @@autocommit, "" nothing
	stored    string // the first function that it calls and that is not the server's own, "" none
	readsID   bool   // it reads LAST_INSERT_ID()
	setsID    bool   // it calls LAST_INSERT_ID(…)
	clock     bool   // it says the statement's time
	variables bool   // it names user variables
	assigns   bool   // it assigns one
	selects   bool   // it has a select within
	sequences bool   // it reads or moves one
}

// clocks are the words and functions that say the statement's time.
var clocks = map[string]bool{
	"now": true, "current_timestamp": true, "localtime": true, "localtimestamp": true, "sysdate": true, "unix_timestamp": true,
	"curdate": true, "curtime": true, "current_date": true, "current_time": true, "utc_date": true, "utc_time": true, "utc_timestamp": true,
}

// touch notes what a piece of the text touches.
func (u *touches) touch(in lex.Scanner) {
	prev, prevWord := lex.Token{}, ""
	for t := in.Next(); t.Kind != lex.EOF && t.Kind != lex.Bad; t = in.Next() {
		word := in.Text[t.Pos:t.End]
		switch t.Kind {
		case lex.Assign:
			u.assigns = u.assigns || prev.Kind == lex.Var
		case lex.Var:
			switch {
			case !strings.HasPrefix(word, "@@"):
				u.variables = true
			default:
				switch name := systemVariable(in, t); {
				case lex.Is(name, "warning_count"), lex.Is(name, "error_count"), lex.Is(name, "autocommit"), lex.Is(name, "in_transaction"):
					u.before = "@@" + name
				case isIDVariable(name):
					u.readsID = true
				}
			}
		case lex.Name:
			if peek := in; peek.Next().Kind == '(' {
				u.calls(word)
			}
		case lex.Word:
			peek := in
			open := peek.Next()
			call := open.Kind == '('
			switch {
			case in.Flavour != lex.MySQL && (lex.Is(word, "nextval") || lex.Is(word, "lastval") || lex.Is(word, "setval") || lex.Is(word, "currval") ||
				lex.Is(word, "value") && (lex.Is(prevWord, "next") || lex.Is(prevWord, "previous"))):
				u.sequences = true
			case lex.Is(word, "select"):
				u.selects = true
			case prev.Kind == '.':
				if call {
					u.calls(word)
				}
			case call && lex.Is(word, "last_insert_id"):
				u.readsID = true
				u.setsID = u.setsID || peek.Next().Kind != ')'
			case call && (lex.Is(word, "row_count") || lex.Is(word, "found_rows")):
				u.before = strings.ToUpper(word) + "()"
			default:
				if call && !isBuiltIn(&in, t, open) {
					u.calls(word)
				}
				u.clock = u.clock || len(word) <= len("current_timestamp") && clocks[strings.ToLower(word)]
			}
		}
		prev, prevWord = t, word
	}
}

// calls notes a call of a function that is not the server's own.
func (u *touches) calls(name string) {
	if u.stored == "" {
		u.stored = unquote(name)
	}
}

// systemVariable is the name of the system variable that a token names, or
// begins to name, as in @@session.identity; "" for a variable of the user's.
// s goes on behind the token.
func systemVariable(s lex.Scanner, t lex.Token) string {
	name, ok := strings.CutPrefix(s.Text[t.Pos:t.End], "@@")
	switch {
	case !ok:
		return ""
	case (lex.Is(name, "session") || lex.Is(name, "local")) && s.Next().Kind == '.':
		t = s.Next()
		return s.Text[t.Pos:t.End]
	}
	return name
}

// isIDVariable says whether a system variable is LAST_INSERT_ID() under another
// name.
func isIDVariable(name string) bool {
	return lex.Is(name, "identity") || lex.Is(name, "last_insert_id")
}

// order says what two expressions touch whose order decides what they come to,
// "" for nothing.
func (u *touches) order(o *touches) string {
	switch {
	case u.assigns && o.variables, u.variables && o.assigns:
		return "a user variable that it assigns"
	case u.sequences && o.sequences:
		return "a sequence"
	}
	return ""
}

// refuseBefore refuses a call, if there is one, that tells of the statement before
// or of the transaction: what leafsql runs first would change what it says.
func (w *insertReader) refuseBefore(call string) error {
	if call == "" {
		return nil
	}
	return refuse(w.Table, call+" would tell of leafsql's own statements, since this one runs as several", "put it into a user variable first")
}

// builtIn are the functions of MySQL and MariaDB themselves that a key may be
// made of, and the other words that may stand before a parenthesis. A call of
// anything else runs what is not in the text: a stored or a loadable function.
var builtIn = wordSet(`
	all and any as between binary by case char character collate dec decimal default div double else except exists float from having in
	index int integer intersect interval is join key lateral like limit match mod not nchar numeric nvarchar offset on or over partition real
	regexp rlike row select signed some then union unsigned using values varbinary varchar when where with xor

	abs acos adddate addtime aes_decrypt aes_encrypt any_value ascii asin atan atan2 avg bin bin_to_uuid bit_and bit_count bit_length
	bit_or bit_xor cast ceil ceiling char_length character_length charset chr coalesce coercibility collation compress concat concat_ws
	connection_id conv convert convert_tz cos cot count crc32 crc32c cume_dist curdate current_date current_role current_time
	current_timestamp current_user curtime database date date_add date_format date_sub datediff day dayname dayofmonth dayofweek dayofyear
	degrees dense_rank elt exp export_set extract extractvalue field find_in_set first_value floor format from_base64 from_days
	from_unixtime get_format greatest group_concat grouping hex hour if ifnull inet6_aton inet6_ntoa inet_aton inet_ntoa insert instr
	is_ipv4 is_ipv6 is_uuid isnull json_array json_array_append json_array_insert json_arrayagg json_contains json_contains_path
	json_depth json_exists json_extract json_insert json_keys json_length json_merge_patch json_merge_preserve json_object
	json_objectagg json_query json_quote json_remove json_replace json_search json_set json_table json_type json_unquote json_valid
	json_value lag last_day last_insert_id lastval last_value lcase lead least left length lengthb ln localtime localtimestamp locate
	log log10 log2 lower lpad ltrim make_set makedate maketime max md5 microsecond mid min minute month monthname nextval now nth_value
	ntile nullif nvl nvl2 oct octet_length ord percent_rank period_add period_diff pi position pow power quarter quote radians rand
	random_bytes rank regexp_instr regexp_like regexp_replace regexp_substr repeat replace reverse right round row_number rpad rtrim
	schema sec_to_time second session_user setval sha sha1 sha2 sign sin sleep soundex space sqrt std stddev stddev_pop stddev_samp
	str_to_date strcmp subdate substr substring substring_index subtime sum sysdate system_user tan time time_format time_to_sec timediff
	timestamp timestampadd timestampdiff to_base64 to_char to_days to_seconds trim truncate ucase uncompress unhex unix_timestamp upper
	user utc_date utc_time utc_timestamp uuid uuid_short uuid_to_bin value var_pop var_samp variance version week weekday weekofyear
	weight_string year yearweek`)

// otherServer are, for each server, those of them that only the other one has: a
// call of such a name runs a stored function.
var otherServer = map[lex.Flavour]map[string]bool{
	lex.MySQL:   wordSet("chr crc32c json_exists json_query lastval lengthb nextval nvl nvl2 setval to_char value"),
	lex.MariaDB: wordSet("any_value bin_to_uuid grouping is_uuid regexp_like uuid_to_bin"),
}

// unspaced are those of them that are the server's own only where the parenthesis
// follows at once: COUNT (1) runs a stored function, unless sql_mode has IGNORE_SPACE.
var unspaced = wordSet(`
	adddate bit_and bit_or bit_xor cast count curdate curtime date_add date_sub extract group_concat json_arrayagg json_objectagg max mid min
	now position session_user std stddev stddev_pop stddev_samp subdate substr substring sum sysdate system_user trim var_pop var_samp variance`)

// isBuiltIn says whether a token, with no dot before it, and the parenthesis that
// follows it call one of these: a quoted name never does.
func isBuiltIn(in *lex.Scanner, name, open lex.Token) bool {
	if name.Kind != lex.Word {
		return false
	}
	word := strings.ToLower(in.Text[name.Pos:name.End])
	return builtIn[word] && !otherServer[in.Flavour][word] && (open.Pos == name.End || !unspaced[word])
}

func wordSet(words string) map[string]bool {
	set := make(map[string]bool)
	for w := range strings.FieldsSeq(words) {
		set[w] = true
	}
	return set
}

// A Program is the body of a stored program, or a view's select: what the
// server runs without its text being sent.
type Program struct {
	Text     string
	Settings Settings // as of when it was made
	DB       string   // what bare names in it mean
}

// Targets are the tables that INSERT, REPLACE and LOAD write in the program,
// each as often as it is named. Strings count as text where the program runs
// texts: EXECUTE could run them.
func (p Program) Targets() []TableName {
	r := p.reader()
	var targets []TableName
	var strs []string
	executes := false
	for prev := (lex.Token{}); !r.ended(); {
		at := r.tok
		switch {
		case at.Kind == lex.String:
			strs = append(strs, stringContent(r.str()))
		case at.Kind == lex.Word && prev.Kind != '.':
			executes = executes || r.isAny("execute", "prepare")
			// CREATE OR REPLACE is no REPLACE.
			if r.writes() && !(prev.Kind == lex.Word && lex.Is(p.Text[prev.Pos:prev.End], "or")) {
				if n, ok := r.target(); ok {
					targets = append(targets, n)
				}
				prev = lex.Token{}
				continue
			}
		}
		prev = at
		r.next()
	}
	if executes {
		for _, s := range strs {
			p.Text = s
			targets = append(targets, p.Targets()...)
		}
	}
	return targets
}

// target reads the table that the statement at the place writes, and stops
// behind its name.
func (r *reader) target() (n TableName, ok bool) {
	if r.accept("load") {
		for !r.is("into") || !r.peekIs("table") {
			if r.atEnd() {
				return n, false
			}
			r.next()
		}
		r.next()
		r.next()
	} else {
		r.next()
		for r.isAny("low_priority", "delayed", "high_priority", "ignore", "into") {
			r.next()
		}
	}
	if !r.atName() {
		return n, false
	}
	n, _, ok = r.tableName()
	return n, ok
}

// Names are the names in the program that begin with db.table.
func (p Program) Names() []TableName {
	r := p.reader()
	var names []TableName
	for !r.ended() {
		if !r.atName() {
			r.next()
			continue
		}
		if n, _, ok := r.tableName(); ok && n.DB != "" {
			names = append(names, n)
		}
	}
	return names
}

// Assigns says whether the program sets NEW's column, as a trigger may.
func (p Program) Assigns(column string) bool {
	r := p.reader()
	for starts := true; !r.ended(); {
		if !starts || !r.accept("set") {
			starts = r.tok.Kind == ';' || r.isAny("begin", "then", "else", "do", "loop", "repeat")
			r.next()
			continue
		}
		for !r.atEnd() {
			isNew := r.is("new")
			r.next()
			if isNew && r.tok.Kind == '.' {
				r.next()
				if r.atName() && strings.EqualFold(r.name(), column) {
					return true
				}
			}
			for !r.atEnd() && r.tok.Kind != ',' { // the value
				if r.tok.Kind != '(' || !r.parens() {
					r.next()
				}
			}
			if r.tok.Kind == ',' {
				r.next()
			}
		}
	}
	return false
}

func (p Program) reader() *reader {
	r := &reader{text: p.Text, settings: p.Settings, db: p.DB}
	r.s = scanner(p.Text, p.Settings, p.Settings.flags())
	r.next()
	return r
}
