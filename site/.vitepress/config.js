import { cpSync } from 'node:fs';
import { defineConfig } from 'vitepress';
import { PAGES, sidebar, stage } from '../stage.js';

stage();

/** The anchor of a heading, as GitHub makes it, so that links work in both places. */
function slugify(heading) {
  return heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{Letter}\p{Number}\s_-]/gu, '')
    .replaceAll(/\s/g, '-');
}

export default defineConfig({
  title: 'perdure',
  description: 'Durable AI agents on Temporal, in TypeScript',
  lang: 'en-US',
  // A project's page on GitHub is below the name of its repository.
  base: process.env.SITE_BASE ?? '/',
  srcDir: 'dist/pages',
  outDir: 'dist/html',
  cacheDir: 'dist/cache',
  cleanUrls: true,
  // A dead link fails the build: nothing is ignored.
  ignoreDeadLinks: false,
  markdown: {
    html: false,
    anchor: { slugify },
    config(md) {
      // Braces of a template in a sentence are no expression of Vue.
      for (const rule of ['text', 'code_inline']) {
        const render = md.renderer.rules[rule];
        md.renderer.rules[rule] = (...args) => render(...args).replaceAll('{{', '&#123;&#123;');
      }
      const fence = md.renderer.rules.fence;
      md.renderer.rules.fence = (tokens, index, ...rest) =>
        tokens[index].info.trim() === 'mermaid'
          ? `<Drawing code="${encodeURIComponent(tokens[index].content)}" />`
          : fence(tokens, index, ...rest);
    },
    theme: { light: 'github-light', dark: 'github-dark' },
  },
  themeConfig: {
    outline: [2, 3],
    search: { provider: 'local' },
    nav: [
      { text: 'Tutorial', link: '/docs/tutorial' },
      { text: 'Documentation', link: '/docs/' },
      { text: 'Questions', link: '/docs/faq' },
    ],
    sidebar: sidebar(),
  },
  // Each page is also there as Markdown, for programs that read it.
  buildEnd: ({ outDir }) => cpSync(PAGES, outDir, { recursive: true }),
});
