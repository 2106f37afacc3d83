package insert

import "strings"

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

func wordSet(words string) map[string]bool {
	set := make(map[string]bool)
	for w := range strings.FieldsSeq(words) {
		set[w] = true
	}
	return set
}
