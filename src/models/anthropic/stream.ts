import { isObject, parseJson } from '../../core/text/json.js';
import { ignoreDeltas, type EmitDelta } from '../model.js';
import type { StreamAssembly } from '../wire/api.js';
import { toArgumentsText, toText } from '../wire/content.js';
import { mergeDelta } from '../wire/opaque-fields.js';
import { createReplyMeter, type ReplyMeter } from '../wire/reply-limits.js';
import { joinArguments, type StreamedArguments } from '../wire/streamed-arguments.js';

type AnyObject = Readonly<Record<string, unknown>>;

/** A block in progress. */
interface OpenBlock {
  readonly type: string;
  /** The block's initial event. */
  readonly begin: AnyObject;
  /** The text, the thoughts, or the arguments so far. */
  text: string;
  signature: string;
  /** The fields of a block of another type, from its deltas. */
  opaque?: unknown;
  /** The arguments of a call. */
  readonly arguments?: StreamedArguments;
  /** The place of a call in the reply; undefined for other blocks. */
  readonly call?: number;
  isClosed: boolean;
}

/** Assembles the events of a stream into the message of an unstreamed reply. */
export function assembleMessage(emit: EmitDelta = ignoreDeltas): StreamAssembly {
  const meter = createReplyMeter();
  const blocks = assembleBlocks({ meter, emit });
  let reason: unknown = null;
  let details: unknown;
  let usage: AnyObject | undefined;

  const end = (delta: unknown): void => {
    if (!isObject(delta)) return;
    reason = delta['stop_reason'] ?? reason;
    details = delta['stop_details'] ?? details;
  };

  return {
    add(event) {
      meter.event();
      if (!isObject(event)) return;
      const { type, message } = event;
      if (type === 'message_start' && isObject(message)) {
        usage = mergeUsage(usage, message['usage']);
      } else if (type === 'content_block_start') blocks.begin(event);
      else if (type === 'content_block_delta') blocks.grow(event);
      else if (type === 'content_block_stop') blocks.close(event);
      else if (type === 'message_delta') {
        usage = mergeUsage(usage, event['usage']);
        end(event['delta']);
      }
    },
    isFinished: () => typeof reason === 'string',
    hasContent: () => blocks.list().some(isContent),
    isThinking: () => !blocks.isInContent(),
    answer: () => ({
      content: blocks.list().map(finishBlock),
      stop_reason: reason,
      stop_details: details,
      usage,
    }),
  };
}

interface Sink {
  readonly meter: ReplyMeter;
  readonly emit: EmitDelta;
}

function assembleBlocks(sink: Sink) {
  const blocks = new Map<unknown, OpenBlock>();
  let calls = 0;
  let current: OpenBlock | undefined;
  return {
    begin({ index = Symbol('unnumbered'), content_block: begin }: AnyObject): void {
      if (!isObject(begin) || blocks.has(index)) return;
      const type = toText(begin['type']);
      const isCall = type === 'tool_use';
      sink.meter.item();
      if (isCall) sink.meter.call();
      const signature = toText(begin['signature']);
      const call = isCall && { call: calls++, arguments: joinArguments() };
      current = { type, begin, text: '', signature, isClosed: false, ...call };
      blocks.set(index, current);
      const name = toText(begin['name']);
      sink.meter.text(name, signature, toText(begin['data']));
      if (call) sink.emit({ kind: 'call', index: call.call, name, text: '' });
      else append(current, toText(begin['text']) || toText(begin['thinking']), sink);
    },
    grow({ index, delta }: AnyObject): void {
      const block = index === undefined ? current : blocks.get(index);
      if (block === undefined || block.isClosed || !isObject(delta)) return;
      current = block;
      const signature = toText(delta['signature']);
      sink.meter.text(signature);
      block.signature += signature;
      const field = FIELDS[block.type];
      if (field === undefined) growOpaque(block, delta, sink);
      else append(block, toArgumentsPart(delta[field]), sink);
    },
    close: ({ index }: AnyObject): void =>
      closeBlock(index === undefined ? current : blocks.get(index), sink),
    /** Returns all blocks, closed. */
    list(): readonly OpenBlock[] {
      for (const block of blocks.values()) closeBlock(block, sink);
      return [...blocks.values()];
    },
    isInContent: () => current !== undefined && isContent(current),
  };
}

function closeBlock(block: OpenBlock | undefined, sink: Sink): void {
  if (block === undefined || block.isClosed) return;
  // A call without arguments has no delta, or an empty one.
  if (block.call !== undefined && block.text === '') {
    append(block, toArgumentsText(block.begin['input']), sink);
  }
  const { unshown = '' } = block.arguments?.finish() ?? {};
  if (block.call !== undefined && unshown !== '') {
    sink.emit({ kind: 'call', index: block.call, text: unshown });
  }
  block.isClosed = true;
}

/** The field of a delta with the next part of a block. */
const FIELDS: Readonly<Record<string, string>> = {
  text: 'text',
  thinking: 'thinking',
  tool_use: 'partial_json',
};

/** Returns the part of a text in a delta; some servers send arguments as an object. */
function toArgumentsPart(value: unknown): string {
  return isObject(value) ? toArgumentsText(value) : toText(value);
}

/** Adds a delta to a block of an unknown type. Its input arrives as parts of a JSON text. */
function growOpaque(block: OpenBlock, delta: AnyObject, { meter }: Sink): void {
  const { type: _, partial_json: part, citation, ...fields } = delta;
  const entries = citation === undefined ? fields : { ...fields, citations: [citation] };
  meter.text(toText(part), toArgumentsText(entries));
  block.text += toText(part);
  block.opaque = mergeDelta(block.opaque, entries);
}

function append(block: OpenBlock, text: string, { meter, emit }: Sink): void {
  if (text === '') return;
  meter.text(text);
  if (block.call !== undefined) {
    block.text += text;
    const shown = block.arguments?.add(text) ?? '';
    if (shown !== '') emit({ kind: 'call', index: block.call, text: shown });
    return;
  }
  block.text += text;
  emit({ kind: block.type === 'thinking' ? 'reasoning' : 'text', text });
}

function isContent({ type, text, call }: OpenBlock): boolean {
  return call !== undefined || (type === 'text' && text !== '');
}

function finishBlock({
  type,
  begin,
  text,
  signature,
  opaque,
  arguments: args,
}: OpenBlock): AnyObject {
  switch (type) {
    case 'text':
      return { ...begin, text };
    case 'thinking':
      return { ...begin, thinking: text, signature };
    case 'tool_use':
      return { ...begin, input: args?.finish().text ?? text };
    default: {
      const input = parseJson(text);
      const merged: unknown = mergeDelta({ ...begin }, opaque);
      return { ...begin, ...(isObject(merged) && merged), ...(isObject(input) && { input }) };
    }
  }
}

/** The counts read from a usage. A hostile stream could add other fields to each event. */
const COUNTS = [
  'input_tokens',
  'output_tokens',
  'cache_read_input_tokens',
  'cache_creation_input_tokens',
  'output_tokens_details',
];

/** Later counts replace earlier ones: those of `message_delta` are totals and may omit some. */
function mergeUsage(usage: AnyObject | undefined, later: unknown): AnyObject | undefined {
  if (!isObject(later)) return usage;
  const known = COUNTS.map((field) => [field, later[field] ?? usage?.[field]] as const);
  return Object.fromEntries(known.filter(([, count]) => count !== undefined));
}
