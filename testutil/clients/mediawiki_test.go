//go:build unix && clients

package clients

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestMediaWikiUsersWrite: users write in a MediaWiki, whose tables have more keys than those that are filled, and refer to each
// other by ids that the client returns.
func TestMediaWikiUsersWrite(t *testing.T) {
	runSite(t, func(step string) program {
		return program{"MediaWiki, " + step, func(t *testing.T) *exec.Cmd {
			cmd := command("mediawiki", "bash", "wiki.sh", step)(t)
			cmd.Env = append(cmd.Env, "MEDIAWIKI="+filepath.Join(installedFolder(t, "mediawiki"), "usr/share/mediawiki"))
			return cmd
		}}
	}, 250, "actor", "archive", "category", "categorylinks", "comment", "content", "content_models", "externallinks", "ip_changes", "ipblocks",
		"linktarget", "log_search", "logging", "page", "page_props", "page_restrictions", "pagelinks", "recentchanges", "redirect", "revision",
		"revision_comment_temp", "searchindex", "site_stats", "slot_roles", "slots", "templatelinks", "text", "user", "user_groups", "watchlist")
}
