import { isObject, type JsonObject } from '../core/json.js';
import { splitText, WHOLE, writeEvents } from './sse.js';
import type { SseOptions } from './replies.js';

type Event = JsonObject & { readonly type: string };

/** The names of the events of a text: its beginning, its deltas, its end. */
interface TextEvents {
  readonly part: string;
  readonly text: string;
  /** The field of the part, and of its last event, with the text. */
  readonly field: 'text' | 'refusal';
  readonly index: 'content_index' | 'summary_index';
}

const TEXT_EVENTS: Readonly<Record<string, TextEvents>> = {
  output_text: {
    part: 'content_part',
    text: 'output_text',
    field: 'text',
    index: 'content_index',
  },
  refusal: { part: 'content_part', text: 'refusal', field: 'refusal', index: 'content_index' },
  summary_text: {
    part: 'reasoning_summary_part',
    text: 'reasoning_summary_text',
    field: 'text',
    index: 'summary_index',
  },
};

/** Writes a response as server-sent events; anything else becomes a single event. */
export function writeResponse(response: JsonObject, options: SseOptions = {}): string {
  const isResponse = Array.isArray(response['output']);
  const all = isResponse ? createEvents(response, options.charactersPerEvent ?? WHOLE) : [];
  const kept = options.endBefore === 'finish' ? all.slice(0, -1) : all;
  const numbered = kept.map((event, number) => ({
    event: event.type,
    data: JSON.stringify({ ...event, sequence_number: number }),
  }));
  return writeEvents(isResponse ? numbered : [{ data: JSON.stringify(response) }], options);
}

function createEvents(response: JsonObject, size: number): readonly Event[] {
  const started = { ...response, status: 'in_progress', output: [], usage: null };
  const output = listObjects(response['output']);
  return [
    { type: 'response.created', response: started },
    { type: 'response.in_progress', response: started },
    ...output.flatMap((item, index) => createItemEvents(item, index, size)),
    { type: `response.${toText(response['status'])}`, response },
  ];
}

function listObjects(value: unknown): readonly JsonObject[] {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it is part of a JSON object
  return (Array.isArray(value) ? value.filter(isObject) : []) as readonly JsonObject[];
}

function createItemEvents(item: JsonObject, index: number, size: number): readonly Event[] {
  const place = { output_index: index, item_id: item['id'] };
  const wrap = (added: JsonObject, within: readonly Event[]): readonly Event[] => [
    { type: 'response.output_item.added', output_index: index, item: added },
    ...within,
    { type: 'response.output_item.done', output_index: index, item },
  ];
  const parts = (field: string): readonly Event[] =>
    listObjects(item[field]).flatMap((part, number) => createPartEvents(part, number, place, size));
  switch (item['type']) {
    case 'message':
      return wrap({ ...item, status: 'in_progress', content: [] }, parts('content'));
    case 'reasoning':
      return wrap({ ...item, summary: [] }, parts('summary'));
    case 'function_call': {
      const args = toText(item['arguments']);
      const type = 'response.function_call_arguments';
      return wrap({ ...item, status: 'in_progress', arguments: '' }, [
        ...splitText(args, size).map((delta) => ({ type: `${type}.delta`, ...place, delta })),
        { type: `${type}.done`, ...place, arguments: args },
      ]);
    }
    default:
      return wrap({ ...item, status: 'in_progress' }, []);
  }
}

function createPartEvents(
  part: JsonObject,
  number: number,
  place: JsonObject,
  size: number,
): Event[] {
  const names = TEXT_EVENTS[toText(part['type'])];
  if (names === undefined) return [];
  const { field } = names;
  const at = { ...place, [names.index]: number };
  const text = toText(part[field]);
  return [
    { type: `response.${names.part}.added`, ...at, part: { ...part, [field]: '' } },
    ...splitText(text, size).map((delta) => ({
      type: `response.${names.text}.delta`,
      ...at,
      delta,
    })),
    { type: `response.${names.text}.done`, ...at, [field]: text },
    { type: `response.${names.part}.done`, ...at, part },
  ];
}

function toText(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
