package read

import (
	"strings"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/lex"
)

// effects are what scan finds.
type effects struct{ insert.Effects }

// clocks are the words and functions that say the statement's time.
var clocks = wordSet("now current_timestamp localtime localtimestamp sysdate unix_timestamp curdate curtime current_date current_time utc_date utc_time utc_timestamp")

// Words behind which tables are named, up to one of those behind which none are; words
// that write one, and what may stand between; and the server's functions that tell of
// other statements, in whatever quotes.
var (
	beforeTables = wordSet("from join straight_join into update table tables insert replace delete truncate for")
	behindTables = wordSet("select where set values value group order having limit return then else do begin end if when case")
	writing      = wordSet("insert replace update delete truncate load call execute")
	modifiers    = wordSet("low_priority high_priority delayed quick ignore")
	counting     = wordSet("last_insert_id row_count found_rows")
)

// scan notes the effects of a piece of SQL.
func (e *effects) scan(s lex.Scanner) {
	var prev lex.Token
	var word string           // the token before, in lower case, where it is a word or a name
	var atVar bool            // the last variable stands where SET has one
	var name insert.TableName // the name that is read
	var outside []bool        // the state around each open parenthesis
	tables := false           // tables may be named here
	first := false            // and the name that is read is one
	results := false          // a word that sets variables was there
	for t := s.Next(); t.Kind != lex.EOF && t.Kind != lex.Bad; t = s.Next() {
		before := word
		word = ""
		if prev.Kind == lex.Var && prev.End-prev.Pos == 1 && (t.Kind == lex.Name || t.Kind == lex.String) { // @`x`, @'x'
			e.Vars = append(e.Vars, "@"+strings.ToLower(strings.Trim(s.Text[t.Pos:t.End], "`'\"")))
			prev.End = t.End
			continue
		}
		at := tables && (prev.Kind == ',' || prev.Kind == '(' || prev.Kind == lex.Word && (beforeTables[before] || modifiers[before]))
		switch t.Kind {
		case lex.Assign, '=':
			e.Assigns = e.Assigns || t.Kind == lex.Assign && (prev.Kind == lex.Var || prev.Kind == lex.Name) || atVar && prev.Kind == lex.Var
		case lex.Var:
			atVar = before == "set" || prev.Kind == ','
			e.variable(s, t)
		case '(':
			outside = append(outside, tables)
			tables = at
		case ')':
			if n := len(outside); n > 0 {
				tables, outside = outside[n-1], outside[:n-1]
			}
		case ';':
			tables = false
		case '.':
			word = before // what stands before db.t stands before t
		case lex.Word, lex.Name:
			text := unquote(s.Text[t.Pos:t.End])
			word = strings.ToLower(text)
			peek := s
			open := peek.Next()
			call := open.Kind == '('
			if prev.Kind == '.' {
				name.DB = name.Table
			} else {
				name.DB, first = "", at
			}
			name.Table = text
			switch {
			case open.Kind == '.' && prev.Kind != '.':
				word = before
			case prev.Kind == '%' && word == "rowcount":
				e.Before = "SQL%ROWCOUNT"
			case prev.Kind != '.' && (!call && t.Kind == lex.Word || call && (first || counting[word] || t.Kind == lex.Word && word == "update" || isBuiltIn(&s, t, open))) && e.keyword(word, before, call, call && peek.Next().Kind != ')', results):
			case before == "call", call && !first && (prev.Kind == '.' || !isBuiltIn(&s, t, open)):
				e.Calls = append(e.Calls, name)
			case first && (prev.Kind == '.' || t.Kind == lex.Name || !keywords[word] && !beforeTables[word] && !(modifiers[word] && (writing[before] || modifiers[before]))):
				e.Tables = append(e.Tables, name)
			}
			if t.Kind == lex.Word && prev.Kind != '.' {
				tables = tables && !behindTables[word] || beforeTables[word] && (!writing[word] || writes(word, before, call))
				results = results || word == "into" && !writing[before] && !modifiers[before] || word == "call" || word == "diagnostics"
			}
		}
		prev = t
	}
	e.Assigns = e.Assigns || results && len(e.Vars) > 0
}

// keyword notes what a word or a call says that is no name, and whether it is one.
// before is the word before it, argument says that it is called with one, and counts
// that a number of rows may be meant.
func (e *effects) keyword(word, before string, call, argument, counts bool) bool {
	switch {
	case call && word == "last_insert_id":
		e.ReadsID, e.SetsID = true, e.SetsID || argument
	case (call || counts) && (word == "row_count" || word == "found_rows"):
		e.Before = strings.ToUpper(word) + "()"
	case word == "temporary":
		e.Temporary = true
	case writing[word] && writes(word, before, call):
		e.Writes = true
	case clocks[word]:
		e.Clock = true
	default:
		return false
	}
	return true
}

// writes says whether one of the writing words is a verb.
func writes(word, before string, call bool) bool {
	if word == "update" { // no function
		return before != "key" && before != "for"
	}
	return !call
}

// variable notes a variable, of the user's or of the system's.
func (e *effects) variable(s lex.Scanner, t lex.Token) {
	switch name := systemVariable(s, t); name {
	case "":
		if t.End-t.Pos > len("@") {
			e.Vars = append(e.Vars, strings.ToLower(s.Text[t.Pos:t.End]))
		}
	case "warning_count", "error_count", "autocommit", "in_transaction":
		e.Before = "@@" + name
	default:
		e.ReadsID = e.ReadsID || isIDVariable(name)
	}
}

// systemVariable is the name, in lower case, of the system variable that a token names,
// or begins to name, as in @@session.identity; "" for a variable of the user's. s goes
// on behind the token.
func systemVariable(s lex.Scanner, t lex.Token) string {
	name, ok := strings.CutPrefix(s.Text[t.Pos:t.End], "@@")
	switch name = strings.ToLower(name); {
	case !ok:
		return ""
	case (name == "session" || name == "local") && s.Next().Kind == '.':
		t = s.Next()
		return strings.ToLower(s.Text[t.Pos:t.End])
	}
	return name
}

// isIDVariable says whether a system variable is LAST_INSERT_ID() under another
// name.
func isIDVariable(name string) bool {
	return name == "identity" || name == "last_insert_id"
}

// keywordList are words that name nothing where they are not quoted.
const keywordList = `
	all and any as between bigint binary blob by case char character check collate dec decimal declare default distinct div double dual each else
	elseif exists float from group having if in index inner int integer intersect interval is join key lateral left like limit longtext match
	mediumint mod natural not nchar numeric nvarchar on or order outer over partition primary real references regexp return right rlike select set
	smallint some then tinyint union unique unsigned using values varbinary varchar when where while with xor
`

var keywords = wordSet(keywordList)

// builtIn are the functions of MySQL and MariaDB themselves that a key may be
// made of, and the other words that may stand before a parenthesis. A call of
// anything else runs what is not in the text: a stored or a loadable function.
var builtIn = wordSet(keywordList + `
	bit check declare do enum returns row signed text until
	abs acos adddate addtime aes_decrypt aes_encrypt any_value ascii asin atan atan2 avg bin bin_to_uuid bit_and bit_count bit_length
	bit_or bit_xor cast ceil ceiling char_length character_length charset chr coalesce coercibility collation compress concat concat_ws
	connection_id conv convert convert_tz cos cot count crc32 crc32c cume_dist curdate current_date current_role current_time
	current_timestamp current_user curtime database date date_add date_format date_sub datediff day dayname dayofmonth dayofweek dayofyear
	degrees dense_rank elt exp export_set extract extractvalue field find_in_set first_value floor format from_base64 from_days
	from_unixtime get_format greatest group_concat grouping hex hour ifnull inet6_aton inet6_ntoa inet_aton inet_ntoa insert instr
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

// Those of them that only one server has: on the other one a call of such a name runs
// a stored function.
var (
	onlyMariaDB = wordSet("chr crc32c json_exists json_query lastval lengthb nextval nvl nvl2 setval to_char value")
	onlyMySQL   = wordSet("any_value bin_to_uuid grouping is_uuid regexp_like uuid_to_bin")
)

// unspaced are those of them that are the server's own only where the parenthesis
// follows at once: COUNT (1) runs a stored function, unless sql_mode has IGNORE_SPACE.
var unspaced = wordSet(`
	adddate bit_and bit_or bit_xor cast count curdate curtime date_add date_sub extract group_concat json_arrayagg json_objectagg max mid min
	now position session_user std stddev stddev_pop stddev_samp subdate substr substring sum sysdate system_user trim var_pop var_samp variance`)

// isBuiltIn says whether a token, with no dot before it, and the parenthesis that
// follows it call one of these: a quoted name never does.
func isBuiltIn(s *lex.Scanner, name, open lex.Token) bool {
	if name.Kind != lex.Word {
		return false
	}
	var buf [32]byte // a longer word is none of these
	word := buf[:copy(buf[:], s.Text[name.Pos:name.End])]
	for i, c := range word {
		if 'A' <= c && c <= 'Z' {
			word[i] |= 0x20
		}
	}
	other := onlyMySQL
	if !s.MariaDB {
		other = onlyMariaDB
	}
	return builtIn[string(word)] && !other[string(word)] && (open.Pos == name.End || !unspaced[string(word)])
}

func wordSet(words string) map[string]bool {
	set := make(map[string]bool)
	for w := range strings.FieldsSeq(words) {
		set[w] = true
	}
	return set
}
