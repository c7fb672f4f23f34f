import { isObject, type JsonObject } from '../core/json.js';
import { pieces, WHOLE, writeEvents } from './sse.js';
import type { SseOptions } from './steps.js';

type Event = JsonObject & { readonly type: string };

function stringOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function objectsIn(value: unknown): readonly JsonObject[] {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it is of a JSON object
  return (Array.isArray(value) ? value.filter(isObject) : []) as readonly JsonObject[];
}

/** Names of the events of one text: what begins it, what brings it, what ends it. */
interface Course {
  readonly part: string;
  readonly text: string;
  /** The field of the part, and of the last event, that holds the text. */
  readonly field: 'text' | 'refusal';
  readonly index: 'content_index' | 'summary_index';
}

const COURSES: Readonly<Record<string, Course>> = {
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

function partEvents(part: JsonObject, number: number, place: JsonObject, size: number): Event[] {
  const course = COURSES[stringOf(part['type'])];
  if (course === undefined) return [];
  const { field } = course;
  const at = { ...place, [course.index]: number };
  const text = stringOf(part[field]);
  return [
    { type: `response.${course.part}.added`, ...at, part: { ...part, [field]: '' } },
    ...pieces(text, size).map((delta) => ({ type: `response.${course.text}.delta`, ...at, delta })),
    { type: `response.${course.text}.done`, ...at, [field]: text },
    { type: `response.${course.part}.done`, ...at, part },
  ];
}

function itemEvents(item: JsonObject, index: number, size: number): readonly Event[] {
  const place = { output_index: index, item_id: item['id'] };
  const around = (begun: JsonObject, within: readonly Event[]): readonly Event[] => [
    { type: 'response.output_item.added', output_index: index, item: begun },
    ...within,
    { type: 'response.output_item.done', output_index: index, item },
  ];
  const parts = (field: string): readonly Event[] =>
    objectsIn(item[field]).flatMap((part, number) => partEvents(part, number, place, size));
  switch (item['type']) {
    case 'message':
      return around({ ...item, status: 'in_progress', content: [] }, parts('content'));
    case 'reasoning':
      return around({ ...item, summary: [] }, parts('summary'));
    case 'function_call': {
      const args = stringOf(item['arguments']);
      const type = 'response.function_call_arguments';
      return around({ ...item, status: 'in_progress', arguments: '' }, [
        ...pieces(args, size).map((delta) => ({ type: `${type}.delta`, ...place, delta })),
        { type: `${type}.done`, ...place, arguments: args },
      ]);
    }
    default:
      return around({ ...item, status: 'in_progress' }, []);
  }
}

function events(response: JsonObject, size: number): readonly Event[] {
  const begun = { ...response, status: 'in_progress', output: [], usage: null };
  const output = objectsIn(response['output']);
  return [
    { type: 'response.created', response: begun },
    { type: 'response.in_progress', response: begun },
    ...output.flatMap((item, index) => itemEvents(item, index, size)),
    { type: `response.${stringOf(response['status'])}`, response },
  ];
}

/** A response as the text of its server-sent events; what is none goes out as one event. */
export function responseSse(response: JsonObject, options: SseOptions = {}): string {
  const isResponse = Array.isArray(response['output']);
  const all = isResponse ? events(response, options.charactersPerEvent ?? WHOLE) : [];
  const kept = options.endBefore === 'finish' ? all.slice(0, -1) : all;
  const numbered = kept.map((event, number) => ({
    event: event.type,
    data: JSON.stringify({ ...event, sequence_number: number }),
  }));
  return writeEvents(isResponse ? numbered : [{ data: JSON.stringify(response) }], options);
}
