// The site is made of the Markdown files of this repository as they are. This file says where each of
// them is on the site, and reads the order of the navigation from the tables of the guide.
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitepress'

const root = fileURLToPath(new URL('../..', import.meta.url))
const repository = 'https://github.com/docent-zk/docent'

// route returns where a file is on the site. The Chinese pages are below zh.
function route(file) {
  let to = file.replace(/(^|\/)README(\.zh-CN)?\.md$/, '$1index$2.md')
  to = to.replace(/^docs\/zh\//, 'zh/docs/')
  return to.replace(/^(.*)\.zh-CN\.md$/, 'zh/$1.md')
}

const files = execFileSync('git', ['-C', root, 'ls-files', '--cached', '--others', '--exclude-standard', '*.md'])
  .toString().trim().split('\n')
  .filter((file) => !file.startsWith('.') && !file.includes('testdata/') && existsSync(path.join(root, file)))
const pages = new Map(files.map((file) => [file, route(file)]))

// target returns a link of a page as a link of the site. What is no page is in the repository.
function target(page, link) {
  if (/^([a-z]+:|#|\/)/.test(link)) return link
  const [name, fragment] = link.split('#')
  const file = path.posix.join(path.posix.dirname(page), name).replace(/\/$/, '')
  const to = pages.get(file) ?? pages.get(path.posix.join(file, 'README.md'))
  const kind = path.posix.extname(file) ? 'blob' : 'tree'
  return (to ? '/' + to : `${repository}/${kind}/main/${file}`) + (fragment ? '#' + fragment : '')
}

// follow has the links of a page lead to where the files are on the site.
function follow(md) {
  md.core.ruler.push('follow', ({ env, tokens }) => {
    const page = path.relative(root, env.realPath ?? env.path).split(path.sep).join('/')
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      if (token.type === 'link_open') token.attrSet('href', target(page, token.attrGet('href')))
    }
  })
}

// slug returns the anchor that GitHub gives to a heading.
function slug(heading) {
  return heading.trim().toLowerCase().replace(/[^\p{L}\p{Nd}\-_ ]/gu, '').replaceAll(' ', '-')
}

// entry returns a link of a guide as an entry of the navigation. The name of a folder stays as it is.
function entry(guide, label, link) {
  const text = link.endsWith('.md') ? label[0].toUpperCase() + label.slice(1) : label
  return { text, link: target(guide, link) }
}

// navigation returns the links of a guide in their order: those of its table, and those below it.
function navigation(guide, rest) {
  const text = readFileSync(path.join(root, guide), 'utf8')
  const items = (part) => [...part.matchAll(/\[([^\]]+)\]\(([^)\s]+)\)/g)]
    .map(([, label, link]) => entry(guide, label, link))
  const title = /^# (.*)$/m.exec(text)[1]
  const table = text.match(/^\|.*\|$/gm).join('\n')
  const below = text.slice(text.lastIndexOf('\n|')).replace(/^\n\|.*\n/, '')
  return [
    { text: title, link: '/' + route(guide), items: items(table) },
    { text: rest, items: items(below) },
  ]
}

const english = navigation('docs/README.md', 'Beside these')
const chinese = navigation('docs/zh/README.md', '此外')

// words returns the words of a text for the search. Chinese has no spaces between them.
function words(text) {
  return [...new Intl.Segmenter('zh', { granularity: 'word' }).segment(text)]
    .filter((part) => part.isWordLike).map((part) => part.segment)
}

// vue finds the modules of Vue for the pages, which are outside of the folder of the modules.
const vue = {
  name: 'vue-for-pages',
  enforce: 'pre',
  resolveId(id, importer) {
    const outside = importer?.endsWith('.md') && /^vue(\/|$)/.test(id)
    return outside ? this.resolve(id, fileURLToPath(import.meta.url), { skipSelf: true }) : null
  },
}

export default defineConfig({
  title: 'docent',
  description: 'Distributed locks and leader election on Apache ZooKeeper, for Go',
  srcDir: '..',
  srcExclude: ['**/testdata/**', 'bin/**'],
  rewrites: Object.fromEntries([...pages].filter(([file, to]) => file !== to)),
  outDir: '../bin/site',
  cacheDir: '../bin/site-cache',
  vite: { plugins: [vue], build: { chunkSizeWarningLimit: 5000 } },
  head: [['link', { rel: 'icon', href: 'data:,' }]],
  markdown: { anchor: { slugify: slug }, attrs: { disable: true }, config: follow },
  themeConfig: {
    i18nRouting: false, // not all pages are there in both languages
    outline: [2, 3],
    search: { provider: 'local', options: { miniSearch: { options: { tokenize: words } } } },
    socialLinks: [{ icon: 'github', link: repository }],
  },
  locales: {
    root: {
      label: 'English',
      lang: 'en',
      themeConfig: {
        nav: [{ text: 'Guide', link: '/docs/' }, { text: 'Changelog', link: '/CHANGELOG' }],
        sidebar: english,
        editLink: { pattern: repository + '/blob/main/:path', text: 'This page in the repository' },
      },
    },
    zh: {
      label: '中文',
      lang: 'zh-CN',
      description: 'Go 语言的分布式锁和选主库，基于 Apache ZooKeeper',
      themeConfig: {
        nav: [{ text: '指南', link: '/zh/docs/' }, { text: '更新日志', link: '/CHANGELOG' }],
        sidebar: chinese,
        editLink: { pattern: repository + '/blob/main/:path', text: '仓库中的本页' },
        outline: { level: [2, 3], label: '本页目录' },
        docFooter: { prev: '上一页', next: '下一页' },
        sidebarMenuLabel: '目录',
        returnToTopLabel: '回到顶部',
        darkModeSwitchLabel: '主题',
        langMenuLabel: '语言',
      },
    },
  },
})
