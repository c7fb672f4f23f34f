import { expect, test } from 'vitest';
import { isOnlyMarkup, parseMarkedCalls } from '../../src/models/calls-in-markup.js';

const tools = [
  {
    name: 'look',
    parameters: {
      type: 'object',
      properties: { at: { type: 'string' }, deep: { type: 'integer' }, list: { type: 'array' } },
    },
  },
  { name: 'today', parameters: { type: 'object', properties: {} } },
];
const json = '{"name": "look", "arguments": {"at": "7"}}';
const look = { name: 'look', arguments: { at: '7' } };
const today = { name: 'today', arguments: {} };

function found(text: string) {
  const marked = parseMarkedCalls(text, tools);
  return marked?.calls?.map((call) => ({
    ...call,
    arguments: JSON.parse(call.arguments) as unknown,
  }));
}

test.each<[string, string, readonly object[]]>([
  ['Hermes', `<tool_call>\n${json}\n</tool_call>`, [look]],
  [
    'Hermes, several',
    `<tool_call>${json}</tool_call>\n<tool_call>{"name":"today"}</tool_call>`,
    [look, today],
  ],
  ['Hermes, without the last tag', `<tool_call>\n${json}`, [look]],
  [
    'Hermes, with parameters',
    '<tool_call>{"name":"look","parameters":{"at":"7"}}</tool_call>',
    [look],
  ],
  [
    'Hermes, with arguments as text',
    '<tool_call>{"name":"look","arguments":"{\\"at\\":\\"7\\"}"}</tool_call><|im_end|>',
    [look],
  ],
  ['a list of calls', `<tool_calls>[${json}]</tool_calls>`, [look]],
  [
    'Qwen coder',
    '<tool_call>\n<function=look>\n<parameter=at>\n7\n</parameter>\n<parameter=deep>\n2\n</parameter>\n</function>\n</tool_call>',
    [{ name: 'look', arguments: { at: '7', deep: 2 } }],
  ],
  ['Llama', '<function=look>{"at": "7"}</function>', [look]],
  ['Llama, a tool without arguments', '<function=today></function>', [today]],
  ['Llama 3.1', '<|python_tag|>{"name": "look", "parameters": {"at": "7"}}<|eom_id|>', [look]],
  ['Mistral, a list', `[TOOL_CALLS][${json}]</s>`, [look]],
  ['Mistral, by name', '[TOOL_CALLS]look{"at": "7"}', [look]],
  [
    'Mistral, by name, several',
    '[TOOL_CALLS]look[CALL_ID]abcdefghi[ARGS]{"at": "7"}[TOOL_CALLS]today[ARGS]{}',
    [look, today],
  ],
  [
    'GLM',
    '<tool_call>look\n<arg_key>at</arg_key>\n<arg_value>7</arg_value>\n<arg_key>list</arg_key>\n<arg_value>[1]</arg_value>\n</tool_call>',
    [{ name: 'look', arguments: { at: '7', list: [1] } }],
  ],
  [
    'DSML',
    '<｜DSML｜function_calls>\n<｜DSML｜invoke name="look">\n<｜DSML｜parameter name="at" string="true">7</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>',
    [look],
  ],
  [
    'DeepSeek V3',
    '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>look\n```json\n{"at": "7"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    [look],
  ],
  [
    'DeepSeek V3.1',
    '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>look<｜tool▁sep｜>{"at": "7"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    [look],
  ],
  [
    'Kimi',
    '<|tool_calls_section_begin|><|tool_call_begin|>functions.look:0<|tool_call_argument_begin|>{"at": "7"}<|tool_call_end|><|tool_calls_section_end|>',
    [look],
  ],
  [
    'MiniMax',
    '<minimax:tool_call>\n<invoke name="look">\n<parameter name="at">7</parameter>\n</invoke>\n</minimax:tool_call>',
    [look],
  ],
  [
    'Claude',
    '<function_calls>\n<invoke name="look">\n<parameter name="at">7</parameter>\n</invoke>\n<invoke name="today">\n</invoke>\n</function_calls>',
    [look, today],
  ],
  [
    'gpt-oss',
    '<|channel|>commentary to=functions.look <|constrain|>json<|message|>{"at": "7"}<|call|>',
    [look],
  ],
])('reads the calls of %s', (_name, text, calls) => {
  expect(found(text)).toEqual(calls);
  expect(parseMarkedCalls(`I look.\n${text}\n`, tools)).toMatchObject({ before: 'I look.' });
  expect(found(`I look.\n${text}\n`)).toEqual(calls);
  expect(isOnlyMarkup(text)).toBe(true);
  expect(isOnlyMarkup(`I look. ${text}`)).toBe(false);
});

test.each([
  '<tool_call>{"name": "look", "argu',
  '<tool_call>{"name": "look", "arguments": {"at": "7"}',
  '<tool_call>\n<function=look>\n<parameter=at>\n7',
  '<function=look>{"at": ',
  '<function=look>',
  '[TOOL_CALLS]look{"at": "7"',
  '[TOOL_CALLS][{"name": "look"',
  '<|python_tag|>look.call(at="7")',
  '<tool_call>',
  `<tool_call>${json}</tool_call><tool_call>{"name"`,
])('never reads a part of a call: %s', (text) => {
  expect(parseMarkedCalls(text, tools)).toEqual({ before: '', calls: null });
});

test.each([
  'no tags',
  `A call looks like <tool_call>${json}</tool_call> in the text.`,
  `Write:\n\`\`\`\n<tool_call>${json}</tool_call>\n\`\`\``,
  `The tag is \`<tool_call>${json}</tool_call>`,
  'A call begins with <tool_call>',
  'x'.repeat(2_000_000),
])('a text about calls is an answer: %.60s', (text) => {
  expect(parseMarkedCalls(text, tools)).toBeNull();
});

test.each(['<tool_call>', '<parameter=', '[TOOL_CALLS]', '<|tool_call_begin|>', '<', '\n', '</s>'])(
  'reads no calls in a long text of %j',
  (part) => {
    const long = part.repeat(20_000);
    expect(parseMarkedCalls(`<tool_call>${long}`, tools)?.calls ?? null).toBeNull();
    expect(parseMarkedCalls(`<function=look>${long}`, tools)?.calls ?? null).toBeNull();
  },
);

test.each([
  [
    'JSON',
    '<tool_call>{"name":"look","arguments":{"at":"7","deep":12345678901234567890}}</tool_call>',
  ],
  [
    'keys and values',
    '<tool_call>look<arg_key>at</arg_key><arg_value>7</arg_value><arg_key>deep</arg_key><arg_value>12345678901234567890</arg_value></tool_call>',
  ],
  [
    'parameters',
    '<function=look><parameter=at>7</parameter><parameter=deep>12345678901234567890</parameter></function>',
  ],
])('keeps each digit of a number in %s', (_name, text) => {
  expect(found(text)).toEqual([
    { name: 'look', arguments: { at: '7', deep: '12345678901234567890' } },
  ]);
});

test.each(['antml:', 'minimax:', '|DSML|', '｜DSML｜'])(
  'reads tags that begin with %s, and keeps it in arguments',
  (begin) => {
    const at = `set ${begin}key=1 in <${begin}thinking> and ${begin}`;
    const tag = (name: string, inner: string, rest = '') =>
      `<${begin}${name}${rest}>${inner}</${begin}${name}>`;
    const value = tag('parameter', at, ' name="at"');
    const text = tag('function_calls', tag('invoke', value, ' name="look"'));
    expect(found(text)).toEqual([{ name: 'look', arguments: { at } }]);
    const inText = parseMarkedCalls(`The ${begin}tag.\n${text}`, tools);
    expect(inText?.before).toBe(`The ${begin}tag.`);
  },
);
