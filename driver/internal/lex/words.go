package lex

import "strings"

// The keywords, built-in functions and system variables of the servers.

// SystemVariable returns the name, in lower case, of the system variable that begins with the token t,
// as in @@session.identity. It returns "" for a user variable. t must be the token that s read last.
func (s Scanner) SystemVariable(t Token) string {
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

// Is reports whether a token is the given unquoted word, ignoring case. word must be in lower case.
func (s *Scanner) Is(t Token, word string) bool {
	return t.Kind == Word && Is(s.Text[t.Pos:t.End], word)
}

// IsIDVariable reports whether a system variable, in lower case, holds the value of LAST_INSERT_ID().
func IsIDVariable(name string) bool { return name == "identity" || name == IDFunction }

// IDFunction is the name of the function that reads the session's last insert id or, with an argument, sets it.
const IDFunction = "last_insert_id"

// Unquote returns a name without its quotes. The name must not be empty.
func Unquote(s string) string {
	q := s[0]
	if q != '`' && q != '"' {
		return s
	}
	s = s[1 : len(s)-1]
	if strings.IndexByte(s, q) >= 0 {
		s = strings.ReplaceAll(s, string([]byte{q, q}), string(q))
	}
	return s
}

// keywordList holds keywords, which are names only if they are quoted.
const keywordList = `
	all and any as between bigint binary blob by case char character check collate dec decimal declare default distinct div double dual each else
	elseif exists float from group having if in index inner int integer intersect interval is join key lateral left like limit longtext match
	mediumint mod natural not nchar numeric nvarchar on or order outer over partition primary real references regexp return right rlike select set
	smallint some then tinyint union unique unsigned using values varbinary varchar when where while with xor
`

var keywords = WordSet(keywordList)

// IsKeyword reports whether an unquoted word, in lower case, is a keyword and so not a name.
func IsKeyword(word string) bool { return keywords[word] }

// builtIn holds the built-in functions of MySQL and MariaDB that may be used for
// a key, and the other words that may be in front of a parenthesis. A call of any
// other name runs a stored or a loadable function, whose body is not in the text.
var builtIn = WordSet(keywordList + `
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

// onlyMariaDB and onlyMySQL hold the built-in functions that only one of the servers has. On the other
// server, a call with the same name runs a stored function.
var (
	onlyMariaDB = WordSet("chr crc32c json_exists json_query lastval lengthb nextval nvl nvl2 setval to_char value")
	onlyMySQL   = WordSet("any_value bin_to_uuid grouping is_uuid regexp_like uuid_to_bin")
)

// noSpaceAllowed holds the functions that are built-in only if the parenthesis follows without a space.
// COUNT (1) runs a stored function, unless sql_mode has IGNORE_SPACE.
var noSpaceAllowed = WordSet(`
	adddate bit_and bit_or bit_xor cast count curdate curtime date_add date_sub extract group_concat json_arrayagg json_objectagg max mid min
	now position session_user std stddev stddev_pop stddev_samp subdate substr substring sum sysdate system_user trim var_pop var_samp variance`)

// IsBuiltIn reports whether the token name and the parenthesis open after it call a built-in function. A
// quoted name never does. The caller must check that no dot is in front of name.
func (s *Scanner) IsBuiltIn(name, open Token) bool {
	if name.Kind != Word {
		return false
	}
	var buf [32]byte // no built-in function has a longer name
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
	return builtIn[string(word)] && !other[string(word)] && (open.Pos == name.End || !noSpaceAllowed[string(word)])
}

// WordSet returns the set of the words in a text.
func WordSet(words string) map[string]bool {
	set := make(map[string]bool)
	for w := range strings.FieldsSeq(words) {
		set[w] = true
	}
	return set
}
