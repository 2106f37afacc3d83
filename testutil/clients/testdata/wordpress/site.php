<?php
// A WordPress site is installed, and then people write on it. It prints the ids that WordPress was given, and what it answers.
$step = $argv[1];
$_SERVER += ['HTTP_HOST' => 'example.org', 'SERVER_NAME' => 'example.org', 'REQUEST_METHOD' => 'GET', 'REQUEST_URI' => '/', 'SERVER_PROTOCOL' => 'HTTP/1.1', 'REMOTE_ADDR' => '127.0.0.1'];
$_SERVER['HTTP_HOST'] = 'example.org';
$_SERVER['REQUEST_METHOD'] = 'GET';
define('ABSPATH', getenv('WORDPRESS'));
if ($step === 'install') {
	define('WP_INSTALLING', true);
	define('WP_SITEURL', 'http://example.org');
}
require ABSPATH . 'wp-config.php';
add_filter('pre_wp_mail', '__return_true');

$failures = 0;
function say($what, $value) {
	global $wpdb, $failures;
	if (is_wp_error($value)) {
		$value = $value->get_error_codes();
	}
	echo $what, ': ', json_encode($value, JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE), "\n";
	if ($wpdb->last_error !== '') {
		echo $what, ', error: ', $wpdb->last_error, "\n";
		$wpdb->last_error = '';
	}
}

if ($step === 'install') {
	require ABSPATH . 'wp-admin/includes/upgrade.php';
	$made = wp_install('A site', 'admin', 'admin@example.org', true, '', 'a password');
	say('installed by', $made['user_id']);
	exit;
}

require ABSPATH . 'wp-admin/includes/admin.php';
wp_set_current_user(1);
$users = [];
foreach (['author', 'editor', 'subscriber'] as $role) {
	say($role, $users[$role] = wp_insert_user(['user_login' => $role, 'user_pass' => 'a password', 'user_email' => "$role@example.org", 'role' => $role]));
}
say('same login', wp_insert_user(['user_login' => 'author', 'user_pass' => 'x', 'user_email' => 'other@example.org']));
$terms = [];
foreach (['News', 'Ärger', '日本'] as $name) {
	say("category $name", $terms[] = wp_insert_category(['cat_name' => $name]));
}
say('same category', wp_insert_term('News', 'category'));
say('tag', wp_insert_term('a tag', 'post_tag', ['description' => "it's \\ a \"tag\""]));
$posts = [];
for ($i = 1; $i <= 12; $i++) {
	$posts[] = $id = wp_insert_post([
		'post_title' => "Post $i", 'post_content' => str_repeat("Text $i with 'quotes', \\ and 😀. ", $i * 40), 'post_status' => $i % 3 ? 'publish' : 'draft',
		'post_author' => $users['author'], 'post_category' => [$terms[$i % 3]], 'tags_input' => ["t$i", 'common'], 'meta_input' => ['number' => $i, 'list' => [1, 2, 3]],
	], true);
	say("post $i", $id);
}
say('revision', wp_update_post(['ID' => $posts[0], 'post_content' => 'changed']));
say('revisions', array_keys(wp_get_post_revisions($posts[0])));
foreach ([0, 1, 3] as $i) {
	$parent = 0;
	for ($j = 0; $j < 4; $j++) {
		say("comment on $i", $parent = wp_insert_comment(['comment_post_ID' => $posts[$i], 'comment_content' => "Comment $j", 'comment_parent' => $parent,
			'user_id' => $users['subscriber'], 'comment_author' => 'someone', 'comment_meta' => ['rating' => $j]]));
	}
}
say('trash', (bool) wp_trash_post($posts[1]));
say('delete', (bool) wp_delete_post($posts[3], true));
say('meta', add_post_meta($posts[4], 'k', 'v'));
say('meta again', update_post_meta($posts[4], 'k', 'w'));
say('unique meta', add_post_meta($posts[4], 'k', 'x', true));
say('option', add_option('an_option', ['a' => 1]));
say('option again', add_option('an_option', 'b'));
say('option changed', update_option('an_option', 'c'));
say('transient', set_transient('a_transient', 'x', 3600));
say('user meta', add_user_meta($users['editor'], 'nick', 'e'));
say('menu', $menu = wp_create_nav_menu('A menu'));
say('menu item', wp_update_nav_menu_item($menu, 0, ['menu-item-title' => 'Home', 'menu-item-url' => 'http://example.org/', 'menu-item-status' => 'publish']));
say('link', wp_insert_link(['link_url' => 'http://example.com/', 'link_name' => 'A link']));
say('attachment', wp_insert_attachment(['post_title' => 'a file', 'post_mime_type' => 'text/plain', 'post_status' => 'inherit'], 'a.txt', $posts[0]));

// What the editor in a browser does.
foreach ([['POST', '/wp/v2/posts', ['title' => 'By REST', 'content' => 'x', 'status' => 'publish', 'categories' => [$terms[0]]]],
	['POST', '/wp/v2/comments', ['post' => $posts[0], 'content' => 'By REST']],
	['POST', '/wp/v2/tags', ['name' => 'rest']],
	['GET', '/wp/v2/posts', []]] as [$method, $route, $parameters]) {
	$request = new WP_REST_Request($method, $route);
	foreach ($parameters as $name => $value) {
		$request->set_param($name, $value);
	}
	$response = rest_do_request($request);
	$data = $response->get_data();
	say("$method $route", [$response->get_status(), $data['id'] ?? array_column($data, 'id')]);
}
$query = new WP_Query(['category__in' => [$terms[1]], 'orderby' => 'ID', 'posts_per_page' => 3]);
say('found', [$query->found_posts, wp_list_pluck($query->posts, 'ID')]);
say('rows', $wpdb->get_row('SELECT (SELECT COUNT(*) FROM wp_posts) p, (SELECT COUNT(*) FROM wp_postmeta) m, (SELECT COUNT(*) FROM wp_comments) c, (SELECT COUNT(*) FROM wp_term_relationships) r', ARRAY_A));
