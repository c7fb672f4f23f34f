// Copies the pages of the repository to `dist/pages`, where VitePress reads them, without a second text of any of
// them: README.md becomes the home page, and each linked file that is not a page becomes one that shows it.
import { copyFileSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { statSync, writeFileSync } from 'node:fs';
import { dirname, extname, join, posix } from 'node:path';

const ROOT = new URL('../', import.meta.url).pathname;
const HERE = new URL('./', import.meta.url).pathname;
/** Where the pages are staged. */
export const PAGES = join(HERE, 'dist/pages');
const PICTURES = new Set(['.png', '.svg', '.jpg']);

/** The pages of the site's first level: what `docs/` has, and what stands beside README.md. */
const SOURCES = ['README.md', 'ARCHITECTURE.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md'];

/** Returns the paths of the pages below a folder, relative to the repository. */
function pagesBelow(folder) {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = posix.join(folder, entry.name);
    if (entry.isDirectory()) return pagesBelow(path);
    return entry.name.endsWith('.md') ? [path] : [];
  });
}

/** The file to which a link of a page leads, relative to the repository; throws if there is none. */
function targetOf(page, link) {
  const path = posix.join(posix.dirname(page), decodeURI(link.split('#')[0]));
  const full = join(ROOT, path);
  if (!existsSync(full)) throw new Error(`${page}: expected a link to a file, got ${link}`);
  if (!statSync(full).isDirectory()) return path;
  const readme = posix.join(path, 'README.md');
  return existsSync(join(ROOT, readme)) ? readme : path;
}

/** The text of a page for a file that is not Markdown, or for a folder. */
function pageOf(path) {
  const full = join(ROOT, path);
  if (statSync(full).isDirectory()) {
    const names = readdirSync(full, { withFileTypes: true }).filter(
      (entry) => entry.name !== 'README.md',
    );
    const links = names.map(({ name }) => `- [${name}](${posix.join('/', path, name)})`);
    return `# ${path}\n\n${links.join('\n')}\n`;
  }
  const language = extname(path).slice(1) || 'txt';
  return `# ${path}\n\n\`\`\`\`${language}\n${readFileSync(full, 'utf8')}\n\`\`\`\`\n`;
}

/** The path of a staged page. A page of a file or folder is named after it. */
function stagedAs(path) {
  if (path === 'README.md') return 'index.md';
  if (path.endsWith('README.md')) return path.replace(/README\.md$/, 'index.md');
  return path.endsWith('.md') || PICTURES.has(extname(path)) ? path : `${path}/index.md`;
}

/**
 * Stages every page, and what pages link to. Returns the staged Markdown by its path. Throws if a link leads to
 * no file.
 */
export function stage() {
  rmSync(PAGES, { recursive: true, force: true });
  const staged = new Map();
  const open = [...SOURCES, ...pagesBelow('docs')];
  const seen = new Set(open);
  const follow = (path) => {
    if (!seen.has(path)) {
      seen.add(path);
      open.push(path);
    }
    return stagedAs(path);
  };
  for (let path = open.shift(); path !== undefined; path = open.shift()) {
    const to = stagedAs(path);
    mkdirSync(dirname(join(PAGES, to)), { recursive: true });
    if (PICTURES.has(extname(path))) {
      copyFileSync(join(ROOT, path), join(PAGES, to));
      continue;
    }
    const isPage = path.endsWith('.md');
    const text = isPage ? readFileSync(join(ROOT, path), 'utf8') : pageOf(path);
    const linked = outsideOfFences(text, (prose) =>
      prose.replaceAll(/\]\(([^)\s]+)\)/g, (whole, link) => {
        if (/^\w+:/.test(link) || link.startsWith('#')) return whole;
        const target = follow(
          link.startsWith('/') ? link.slice(1).replace(/\/$/, '') : targetOf(path, link),
        );
        const anchor = link.includes('#') ? link.slice(link.indexOf('#')) : '';
        const here = posix.relative(posix.dirname(to), target);
        return `](${here.startsWith('.') ? here : `./${here}`}${anchor})`;
      }),
    );
    writeFileSync(join(PAGES, to), linked);
    staged.set(to, linked);
  }
  return staged;
}

/** Applies a function to the parts of a text that are outside of fenced blocks. */
function outsideOfFences(text, change) {
  return text
    .split(/^(`{3,}[^\n]*\n[\s\S]*?^`{3,}$)/m)
    .map((part, index) => (index % 2 === 0 ? change(part) : part))
    .join('');
}

/** The sidebar, from the headings and links of `docs/README.md`. */
export function sidebar() {
  const index = readFileSync(join(ROOT, 'docs/README.md'), 'utf8');
  return index
    .split(/^## /m)
    .slice(1)
    .map((section) => {
      const [text = ''] = section.split('\n');
      const links = [...section.matchAll(/^- \[([^\]]+)\]\(([^)\s]+)\)/gm)];
      const items = links.map(([, title, link]) => ({
        text: title,
        link: `/${stagedAs(targetOf('docs/README.md', link)).replace(/(index)?\.md$/, '')}`,
      }));
      return { text, collapsed: false, items };
    });
}
