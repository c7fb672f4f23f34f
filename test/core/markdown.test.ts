import fc from 'fast-check';
import { fromMarkdown } from 'mdast-util-from-markdown';
import { describe, expect, test } from 'vitest';
import {
  escapeMarkdown,
  eventSummary,
  inertMarkdown,
  workflowSummary,
} from '../../src/core/run/details.js';
import { callSummary, visible } from '../../src/core/state/summaries.js';
import { runSummary } from '../../src/updates/start.js';

type Node = ReturnType<typeof fromMarkdown>['children'][number] | ReturnType<typeof fromMarkdown>;

/** Parses Markdown as Temporal's UI does: the elements of a text, and what a person reads. */
function read(markdown: string): { readonly types: readonly string[]; readonly text: string } {
  const types: string[] = [];
  let text = '';
  const visit = (node: Node): void => {
    types.push(node.type);
    if ('value' in node) text += node.value;
    if ('children' in node) for (const child of node.children) visit(child);
  };
  visit(fromMarkdown(markdown));
  return { types, text };
}

const LIVE = [
  'link',
  'linkReference',
  'image',
  'imageReference',
  'definition',
  'html',
  'code',
  'inlineCode',
  'heading',
  'list',
  'blockquote',
  'thematicBreak',
];

const HOSTILE = [
  '[your bank](https://evil.example)',
  '![x](https://evil.example/pixel.png)',
  '[a [b] c](https://evil.example)',
  '[![x](y)](z)',
  '<https://evil.example>',
  '<1@evil.example>',
  '<b onclick=x>hi</b><!-- x --><?x?>',
  '<img src=x onerror=alert(1)>',
  '\\<b>hi</b>',
  '\\\\[a](b)',
  '\\\\`code`',
  '```\ncode',
  '~~~ code',
  '`code`',
  '[a]: https://evil.example',
  '[a][a]',
  '# heading',
  '> quote',
  '- list',
  '1. list',
  '1) list',
  '***',
  '- - -',
  '___',
  '&lt;b&gt; &#x202e;',
  '    indented code',
];

describe('foreign text in the summaries of the UI', () => {
  test.each(HOSTILE)('is shown as text: %s', (text) => {
    const line = visible(text);
    const exact = read(escapeMarkdown(line));
    expect(exact).toEqual({ types: ['root', 'paragraph', 'text'], text: line.trim() });
    const { types } = read(inertMarkdown(line));
    expect(types.filter((type) => LIVE.includes(type))).toEqual([]);
  });

  const piece = fc.constantFrom(
    ...HOSTILE,
    ...Array.from('\\[](){}<>!`~*_#&;:-+=.1ax /|"\n'),
    'https://x.y',
  );
  const anyLine = fc.array(piece, { maxLength: 12 }).map((pieces) => visible(pieces.join('')));

  test('is exactly the same text in a workflow summary, whatever it is', () => {
    fc.assert(
      fc.property(anyLine, (line) => {
        const { types, text } = read(escapeMarkdown(line));
        expect(types.every((type) => ['root', 'paragraph', 'text'].includes(type))).toBe(true);
        expect(text).toBe(line.trim());
      }),
      { numRuns: 300 },
    );
  });

  test('is not a link, an image, HTML, or code in the summary of an activity, whatever it is', () => {
    fc.assert(
      fc.property(anyLine, (line) => {
        const { types } = read(inertMarkdown(line));
        expect(types.filter((type) => LIVE.includes(type))).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });

  test('is readable if it is plain: names, paths, globs, addresses', () => {
    for (const line of [
      'read_file src/a_b/[id].ts 7',
      'grep x < y && a || b **/*.ts',
      'fetch https://example.com/a?b=c&d=e#f',
      'C:\\tmp\\x (copy) -1 1.5',
    ]) {
      expect(inertMarkdown(line)).toBe(line);
    }
  });

  test("fits into Temporal's limit, in any language", () => {
    for (const text of ['漢'.repeat(500), '😀'.repeat(500), '"\\'.repeat(300), '`<a'.repeat(300)]) {
      for (const summary of [workflowSummary(text), eventSummary(text)]) {
        expect(Buffer.byteLength(JSON.stringify(summary))).toBeLessThanOrEqual(400);
        expect(read(summary).types.filter((type) => LIVE.includes(type))).toEqual([]);
      }
    }
  });

  test('is plain text in the summary of a run in a list', () => {
    const { types } = read(runSummary({ agent: 'desk', message: HOSTILE.join(' ') }));
    expect(types).toEqual(['root', 'paragraph', 'text']);
    const call = {
      id: 'c',
      name: 'look',
      arguments: JSON.stringify({ a: HOSTILE[0] }),
      digest: '',
    };
    expect(read(eventSummary(callSummary(call))).types).toEqual(['root', 'paragraph', 'text']);
  });
});
