//go:build unix && clients

package clients

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestWordPressUsersWrite: users write in a WordPress.
func TestWordPressUsersWrite(t *testing.T) {
	runSite(t, func(step string) program {
		return program{"WordPress, " + step, func(t *testing.T) *exec.Cmd {
			cmd := command("wordpress", "php", "site.php", step)(t)
			cmd.Env = append(cmd.Env, "WORDPRESS="+filepath.Join(installedFolder(t, "wordpress"), "usr/share/wordpress")+"/")
			return cmd
		}}
	}, 300, "wp_commentmeta", "wp_comments", "wp_links", "wp_options", "wp_postmeta", "wp_posts", "wp_term_relationships", "wp_term_taxonomy",
		"wp_termmeta", "wp_terms", "wp_usermeta", "wp_users")
}
