import { describe, expect, test } from 'vitest';
import { drawLoop, type LoopParts, toMermaid } from '../../../src/core/graph/draw.js';
import type { ToolDefinition } from '../../../src/core/definition/tool-definition.js';

function tool(name: string, rest: Partial<ToolDefinition> = {}): ToolDefinition {
  return {
    name,
    description: 'x',
    parameters: {},
    effect: 'read',
    timeoutMs: 1,
    heartbeatMs: 1,
    attempts: 1,
    ...rest,
  };
}

const shown = (parts: Partial<LoopParts>): readonly string[] =>
  toMermaid(drawLoop({ model: 'm', tools: [], onLimit: 'answer', ...parts }))
    .split('\n')
    .slice(1, -2)
    .map((line) => line.trim());

describe('the drawing of the built-in loop', () => {
  test('leads from decide to the tools and back, and with a text to the end', () => {
    const tools = [
      tool('read_file'),
      tool('submit', { ends: true }),
      tool('ask_person', { kind: 'question' }),
      tool('pick', { kind: 'client' }),
      tool('desk', { kind: 'agent', calls: { agent: 'desk.v2', parentClose: 'abandon' } }),
    ];
    expect(shown({ tools })).toEqual([
      'start(["start"])',
      'n0{{"decide<br/>model m"}}',
      'n1["read_file<br/>tool"]',
      'n2["submit<br/>tool"]',
      'n3[\\"👤 ask_person<br/>a person answers"/]',
      'n4[\\"👤 pick<br/>the caller executes it"/]',
      'n5[["desk<br/>agent desk#46;v2"]]',
      'closing{{"closing answer<br/>without tools"}}',
      'finish(["end"])',
      'start --> n0',
      'n0 -->|"read_file"| n1',
      'n1 --> n0',
      'n0 -->|"submit"| n2',
      'n2 -->|"done"| finish',
      'n2 -->|"failed"| n0',
      'n0 -->|"ask_person"| n3',
      'n3 --> n0',
      'n0 -->|"pick"| n4',
      'n4 --> n0',
      'n0 -->|"desk"| n5',
      'n5 --> n0',
      'n0 -->|"text"| finish',
      'n0 -->|"limit"| closing',
      'closing --> finish',
    ]);
  });

  test.each([
    ['compose', ['n0 -->|"limit"| closing', 'closing --> finish']],
    ['fail', ['n0 -->|"limit, the turn fails"| finish']],
    [
      'ask',
      [
        'n0 -->|"limit"| closing',
        'closing -->|"raise"| n0',
        'closing -->|"stop, closing answer"| finish',
      ],
    ],
  ] as const)('shows what happens at a limit with onLimit %s', (onLimit, edges) => {
    const lines = shown({ onLimit });
    expect(lines.slice(lines.indexOf('n0 -->|"text"| finish') + 1)).toEqual(edges);
    expect(lines.some((line) => line.startsWith('closing') && !line.includes('-->'))).toBe(
      onLimit !== 'fail',
    );
  });

  test('repeats an invalid answer, and fails at a text if the agent requires calls', () => {
    expect(shown({ output: { type: 'function' } })).toContain('n0 -->|"invalid answer"| n0');
    expect(shown({ onPlainText: 'fail' })).toContain('n0 -->|"text"| finish');
    const strict = shown({ onPlainText: 'fail', tools: [tool('a')], output: { type: 'function' } });
    expect(strict).toContain('n0 -->|"text, the turn fails"| finish');
    expect(strict.join()).not.toContain('invalid');
  });

  test('shows what makes the decisions', () => {
    expect(shown({ decide: 'schema' })[1]).toBe('n0{{"decide<br/>model m, by schema"}}');
    expect(shown({ decide: 'function' })[1]).toBe('n0{{"decide<br/>own function"}}');
    expect(shown({ model: '', decide: 'schema' })[1]).toBe('n0{{"decide<br/>model, by schema"}}');
    expect(shown({ model: '' })[1]).toBe('n0{{"decide<br/>model"}}');
  });
});
