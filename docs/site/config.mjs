// The configuration of VitePress, which makes a site of the repository's Markdown files: make site. The files stay as the
// repository's host shows them, with links to files and its anchors; this file converts both.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { posix } from 'node:path'

const top = 'pages' // the repository's pages and pictures
const repository = 'https://github.com/leafsql/leafsql'

// pages maps each Markdown file to its page. The front pages are the READMEs, in English and Chinese.
const pages = Object.fromEntries(readdirSync(top, { recursive: true }).filter(f => f.endsWith('.md')).sort().map(f => [f, f
  .replace(/^README(?:\.(zh-CN))?\.md$/, (_, language) => posix.join(language ?? '', 'index.md'))
  .replace(/^docs\/(zh-CN\/)?README\.md$/, '$1documentation.md')
  .replace(/^examples\/README\.md$/, 'examples.md')
  .replace(/^docs\//, '')]))
const title = file => readFileSync(`${top}/${file}`, 'utf8').match(/^# (.*)$/m)[1].replaceAll('`', '')

// The switch of languages leads from each English page to a Chinese one, so a page without a translation gets a page with a link.
for (const [file, page] of Object.entries(pages)) {
  const chinese = `docs/zh-CN/${page}`
  if (/zh-CN/.test(file) || Object.values(pages).includes(`zh-CN/${page}`)) continue
  mkdirSync(posix.dirname(`${top}/${chinese}`), { recursive: true })
  writeFileSync(`${top}/${chinese}`, `---\nsearch: false\n---\n# ${title(file)}\n\n这一页还没有译文，请看[英文页](${posix.relative(posix.dirname(chinese), file)})。\n`)
  pages[chinese] = `zh-CN/${page}`
}

const item = file => ({ text: title(file), link: '/' + pages[file].replace(/\.md$/, '').replace(/(^|\/)index$/, '$1') })

// target returns the site's link for a link in a file: a page, or the file on the repository's host.
function target(file, link) {
  if (link === '' || /^[a-z]+:/.test(link) || link.startsWith('#')) return link
  const [, path, anchor] = link.match(/^([^#]*)(.*)$/)
  let to = posix.join(posix.dirname(file), path)
  if (`${to}/README.md` in pages) to += '/README.md'
  return to in pages ? `/${pages[to]}${anchor}` : `${repository}/blob/main/${to}${anchor}`
}

function convert(md) {
  md.core.ruler.push('repository', ({ env, tokens }) => {
    const file = Object.keys(pages).find(f => pages[f] === env.relativePath) ?? env.relativePath
    for (const token of tokens) {
      if (token.type === 'code_block') token.type = 'fence' // indented code looks like fenced code
      for (const child of token.children ?? []) {
        if (child.type === 'link_open') child.attrSet('href', target(file, child.attrGet('href')))
      }
    }
  })
}

// anchor returns the anchor of a heading, as GitHub writes it.
const anchor = heading => heading.toLowerCase().trim().replace(/[^\p{L}\p{N}_\- ]/gu, '').replaceAll(' ', '-')

// words splits a text for the search: Chinese, which has no spaces, into characters.
const words = text => text.match(/\p{Script=Han}|[^\s\p{P}\p{S}\p{Script=Han}]+/gu) ?? []

// sidebar lists the pages in the order of the page with all pages, under its headings, by their titles.
function sidebar(index) {
  const groups = []
  for (const [, heading, path] of readFileSync(`${top}/${index}`, 'utf8').matchAll(/^##+ (.*)$|^\| \[[^\]]*\]\(([^)#]*\.md)\)/gm)) {
    if (heading) groups.push({ text: heading, items: [] })
    else groups.at(-1).items.push(item(posix.join(posix.dirname(index), path)))
  }
  return groups.filter(({ items }) => items.length > 0)
}

const project = Object.keys(pages).filter(f => /^[A-Z]{5,}\.md$/.test(f) && f !== 'README.md' || /^docs\/(design|contributing)\//.test(f)).map(item)

export default {
  title: 'leafsql',
  base: process.env.BASE || '/',
  srcDir: top,
  outDir: '../../site',
  rewrites: pages,
  vite: { build: { chunkSizeWarningLimit: 4000 } },
  markdown: { config: convert, anchor: { slugify: anchor }, languageAlias: { haproxy: 'nginx' } },
  themeConfig: {
    socialLinks: [{ icon: 'github', link: repository }],
    outline: [2, 3],
    search: {
      provider: 'local',
      options: {
        miniSearch: { options: { tokenize: words }, searchOptions: { combineWith: 'AND', fuzzy: false } },
        locales: { 'zh-CN': { translations: {
          button: { buttonText: '搜索', buttonAriaLabel: '搜索' },
          modal: { noResultsText: '没有结果', resetButtonTitle: '清空', footer: { selectText: '选择', navigateText: '切换', closeText: '关闭' } },
        } } },
      },
    },
  },
  locales: {
    root: {
      label: 'English', lang: 'en',
      description: 'Globally unique primary keys for MySQL and MariaDB',
      themeConfig: {
        nav: [{ text: 'Documentation', link: '/documentation' }, { text: 'FAQ', link: '/faq' }, { text: 'Changelog', link: '/CHANGELOG' }],
        sidebar: [...sidebar('docs/README.md'), { text: 'Project', items: project }],
      },
    },
    'zh-CN': {
      label: '中文', lang: 'zh-CN',
      description: 'MySQL 和 MariaDB 的分布式 ID：全局唯一的主键',
      themeConfig: {
        nav: [{ text: '文档', link: '/zh-CN/documentation' }, { text: '常见问题', link: '/zh-CN/faq' }, { text: '变更记录', link: '/CHANGELOG' }],
        sidebar: sidebar('docs/zh-CN/README.md'),
        outline: { level: [2, 3], label: '本页内容' },
        docFooter: { prev: '上一页', next: '下一页' },
        sidebarMenuLabel: '菜单', returnToTopLabel: '回到顶部', langMenuLabel: '语言',
        darkModeSwitchLabel: '外观', lightModeSwitchTitle: '浅色', darkModeSwitchTitle: '深色',
      },
    },
  },
}
