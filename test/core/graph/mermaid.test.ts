import { describe, expect, test } from 'vitest';
import { drawGraph, toMermaid } from '../../../src/core/graph/draw.js';
import { asking, graphOfNodes, mail, runNode } from './fixture.js';

/** A line of a drawing: perdure's ids, a quoted text of safe characters, and nothing else. */
const TEXT = String.raw`"(?:👤 )?(?:[\p{L}\p{N} ,_×-]|\d\.\d s|#\d+;|<br/>)*"`;
const ID = '(?:n\\d+|start|finish|closing)';
const LINE = new RegExp(
  [
    'flowchart TD',
    String.raw`  ${ID}(?:\(\[${TEXT}\]\)|\{${TEXT}\}|\{\{${TEXT}\}\}|\[\[${TEXT}\]\]|\[\\${TEXT}/\]|\[${TEXT}\])`,
    String.raw`  ${ID} (?:-->|==>|-\.->)(?:\|${TEXT}\|)? ${ID}`,
    String.raw`  classDef [a-z]+ [\w:#,\- ]+`,
    String.raw`  class ${ID}(?:,${ID})* [a-z]+`,
    String.raw`  linkStyle \d+(?:,\d+)* stroke:#16a34a,stroke-width:3px`,
  ]
    .map((form) => `(?:${form})`)
    .join('|')
    .replace(/^/, '^(?:')
    .concat(')$'),
  'u',
);

const lines = (text: string): readonly string[] => text.split('\n');

describe('the Mermaid text', () => {
  test('of a graph marks the start, names the exits of a branch, and draws each kind in its shape', () => {
    expect(lines(toMermaid(drawGraph(mail)))).toEqual([
      'flowchart TD',
      '  start(["start"])',
      '  n0["load the mail<br/>run"]',
      '  n1{"sort<br/>choose"}',
      '  n2[["ask<br/>agent desk"]]',
      '  n3[\\"👤 send<br/>confirm"/]',
      '  n4{{"page<br/>route"}}',
      '  finish(["end"])',
      '  start --> n0',
      '  n0 --> n1',
      '  n1 -->|"urgent"| n4',
      '  n1 -->|"else"| n2',
      '  n2 -->|"done"| n3',
      '  n2 -->|"stopped"| finish',
      '  n2 -->|"failed"| finish',
      '  n3 -->|"yes"| finish',
      '  n3 -->|"no"| n2',
      '  n4 -->|"paged"| n2',
      '  n4 -->|"nobody"| finish',
      '  classDef terminal fill:#e2e8f0,stroke:#475569,color:#0f172a',
      '  class start,finish terminal',
    ]);
  });

  test('of a run shows visits, times, the edges taken, and the current node', () => {
    const text = lines(toMermaid(drawGraph(mail, { state: asking, here: 'waits here' })));
    expect(text.slice(1, 21)).toEqual([
      '  start(["start"])',
      '  n0["load the mail<br/>run<br/>3×, 1.2 s"]',
      '  n1{"sort<br/>choose<br/>3×, 0.0 s"}',
      '  n2[["ask<br/>agent desk<br/>2×, 4.0 s<br/>waits here"]]',
      '  n3[\\"👤 send<br/>confirm<br/>1×"/]',
      '  n4{{"page<br/>route"}}',
      '  finish(["end"])',
      '  start ==> n0',
      '  n0 ==>|"3×"| n1',
      '  n1 -.->|"urgent"| n4',
      '  n1 ==>|"else 3×"| n2',
      '  n2 ==>|"done 1×"| n3',
      '  n2 -.->|"stopped"| finish',
      '  n2 -.->|"failed"| finish',
      '  n3 -.->|"yes"| finish',
      '  n3 ==>|"no 1×"| n2',
      '  n4 -.->|"paged"| n2',
      '  n4 -.->|"nobody"| finish',
      '  classDef terminal fill:#e2e8f0,stroke:#475569,color:#0f172a',
      '  class start,finish terminal',
    ]);
    expect(text.filter((line) => line.startsWith('  class '))).toEqual([
      '  class start,finish terminal',
      '  class n0,n1,n3 visited',
      '  class n2 here',
      '  class n4 unvisited',
    ]);
    expect(text.at(-1)).toBe('  linkStyle 0,1,3,4,8 stroke:#16a34a,stroke-width:3px');
  });

  test('shows as failed what the run has left, but never by an exit of success', () => {
    const graph = graphOfNodes('a', [runNode('a', 'end')]);
    const classOf = (taken: readonly { exit: string; count: number }[]) => {
      const visited = [{ node: 'a', inTurn: 1, total: 1, ms: 0, taken }];
      const drawn = drawGraph(graph, { state: { values: {}, at: null, visited } });
      return toMermaid(drawn).match(/class n0 (\w+)/)?.[1];
    };
    expect(classOf([{ exit: 'done', count: 1 }])).toBe('visited');
    expect(classOf([{ exit: 'failed', count: 2 }])).toBe('failed');
    // The turn has ended in the node.
    expect(classOf([])).toBe('failed');
    const repaired = [
      { exit: 'failed', count: 1 },
      { exit: 'done', count: 1 },
    ];
    expect(classOf(repaired)).toBe('visited');
  });

  test('shows a current first visit without a time, and a run before its turn without a visit', () => {
    const graph = graphOfNodes('a', [runNode('a', 'end')]);
    const at = { node: 'a', visit: 1, since: 0 };
    const first = { node: 'a', inTurn: 1, total: 1, ms: 0, taken: [] };
    const drawn = (visited: (typeof first)[]) =>
      toMermaid(drawGraph(graph, { state: { values: {}, at, visited } }));
    expect(drawn([first])).toContain('n0["a<br/>run<br/>1×"]');
    // The state may list a node only once it has been left.
    expect(drawn([])).toBe(drawn([first]));
    const fresh = toMermaid(drawGraph(graph, { state: { values: {}, at: null, visited: [] } }));
    expect(fresh).toContain('n0["a<br/>run"]');
    expect(fresh).toContain('start -.-> n0');
    expect(fresh).not.toContain('linkStyle');
  });

  test.each([
    ['a quote', '"]; click n0 "javascript:alert(1)"'],
    ['brackets', 'a] --> b[(c){d}((e))'],
    ['an arrow', 'a --> b ==> c -.-> d'],
    ['a code span', '`**bold** _it_ [x](http://x.example)`'],
    ['HTML', '<script>alert(1)</script><img src=x onerror=alert(1)>'],
    ['lines', 'a\nclick n0 "http://x"\r\n%% x\u2028style n0 fill:red\tb'],
    ['bidi', 'abc\u202edef\u2066\u200b'],
    ['a directive', "%%{init: {'securityLevel':'loose'}}%%"],
    ['a style line', 'style n0:#lt;b#gt;;'],
    ['a reference', '#lt;script#gt; &lt;b&gt; #35;'],
    ['the internal form of a reference', 'ﬂ°lt¶ß ﬂ°°60¶ß'],
    ['a list', '- a'],
    ['a numbered list', '1. a'],
    ['emphasis', '_a_ *b* __c__ ~~d~~'],
    ['a formula and an icon', '$$x$$ fa:fa-user'],
    ['a keyword', 'end'],
    ['a lone surrogate', 'a\ud800b'],
    ['a backslash', '\\"]'],
    ['a pipe', '|x| n0'],
    ['nothing', ' '],
    ['much', '"'.repeat(10_000)],
  ])('is not changed by a label with %s', (_, hostile) => {
    const nodes = [
      runNode('a', 'b', hostile),
      {
        ...runNode('b', 'end'),
        exits: [
          { name: hostile, to: 'end' },
          { name: 'x', to: 'a' },
        ],
      },
      {
        name: 'c',
        kind: 'agent' as const,
        agent: hostile,
        message: '',
        exits: [{ name: 'done', to: hostile }],
      },
    ];
    const state = { values: {}, at: { node: 'a', visit: 1, since: 0 }, visited: [] };
    const text = toMermaid(drawGraph(graphOfNodes('a', nodes), { state, here: hostile }));
    for (const line of lines(text)) expect(line).toMatch(LINE);
    const missing = hostile === 'end' ? 0 : 1;
    expect(
      lines(text).filter((line) => /^ {2}(?:n\d|start|finish)\S*["(]/.test(line)),
    ).toHaveLength(5 + missing);
  });

  test.each([
    ['größe read_file e-mail 読む, -x x-', 'größe read_file e-mail 読む, #45;x x#45;'],
    ['_a b_', '#95;a b#95;'],
    ['ﬂ', '#64258;'],
    ['a"b', 'a#34;b'],
    ['a\u202eb', 'a#92;u202eb'],
    ['a\n b', 'a b'],
    ['a'.repeat(200), `${'a'.repeat(159)}#8230;`],
  ])('writes %j as %j', (label, written) => {
    const graph = graphOfNodes('a', [runNode('a', 'end', label)]);
    expect(toMermaid(drawGraph(graph))).toContain(`n0["${written}<br/>run"]`);
  });

  test('describes a node once if its name is the description', () => {
    const graph = graphOfNodes('run', [runNode('run', 'end')]);
    expect(toMermaid(drawGraph(graph))).toContain('n0["run"]');
  });

  test.each(['end', 'graph', 'subgraph', 'class', 'style', 'click', 'constructor', 'toString'])(
    'gives a node named %s a different id',
    (name) => {
      const graph = graphOfNodes(name === 'end' ? 'a' : name, [
        runNode(name, 'a'),
        runNode('a', 'end'),
      ]);
      const visited = [{ node: 'a', inTurn: 1, total: 1, ms: 5, taken: [] }];
      const text = toMermaid(drawGraph(graph, { state: { values: {}, at: null, visited } }));
      for (const line of lines(text)) expect(line).toMatch(LINE);
      expect(text).toContain(`n0["${name}<br/>run"]`);
      expect(text).toContain('n1["a<br/>run<br/>1×, 0.0 s"]');
    },
  );

  test('draws a target that the graph lacks, and no end if nothing leads to it', () => {
    const text = toMermaid(drawGraph(graphOfNodes('a', [runNode('a', 'gone')])));
    expect(text).toContain('n1["gone<br/>not in the graph"]');
    expect(text).toContain('n0 --> n1');
    expect(text).not.toContain('finish');
    expect(toMermaid(drawGraph(graphOfNodes('gone', [])))).toContain('start --> n0');
  });

  test('is the same for the same graph', () => {
    const copy = structuredClone(mail);
    expect(toMermaid(drawGraph(copy))).toBe(toMermaid(drawGraph(mail)));
  });
});

describe('the description of a node’s work', () => {
  const worker = { timeoutMs: 1, attempts: 1 };
  test.each([
    [{ kind: 'run', ...worker }, 'each run, 4 at once'],
    [{ kind: 'agent', agent: 'desk', message: '' }, 'each agent desk, 4 at once'],
    [{ kind: 'graph', graph: 'mail', input: {} }, 'each graph mail, 4 at once'],
    [{ kind: 'tool', tool: 'look', arguments: {} }, 'each tool look, 4 at once'],
  ] as const)('exists for %j', (body, about) => {
    const node = { name: 'e', kind: 'each', over: [], atOnce: 4, body, exits: [] } as const;
    expect(drawGraph(graphOfNodes('e', [node])).nodes[1]?.about).toBe(about);
  });

  test('names the graph and the tool', () => {
    const graph = graphOfNodes('g', [
      { name: 'g', kind: 'graph', graph: 'mail', input: {}, exits: [] },
      { name: 't', kind: 'tool', tool: 'look', exits: [] },
      { name: 'd', kind: 'decide', exits: [] },
    ]);
    const about = drawGraph(graph).nodes.map((node) => node.about);
    expect(about).toEqual(['', 'graph mail', 'tool look', 'decide']);
  });
});
