import { z } from 'zod';
import { parseJson } from '../core/text/json.js';
import { ownVersion } from '../storage/files.js';
import { errorBody } from './errors.js';
import { OPERATIONS, type Operation, pathFields } from './operations.js';

type Part = Readonly<Record<string, unknown>>;

/** Returns the OpenAPI 3.1 document of the HTTP API. */
export function openApiDocument(): Part {
  const schemas: Record<string, unknown> = {};
  const schemaOf: SchemaOf = (type, io) => {
    const json = JSON.stringify(z.toJSONSchema(type, { io, unrepresentable: 'any' }));
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- zod has just written it
    const written = parseJson(json.replaceAll('"#/$defs/', '"#/components/schemas/')) as JsonSchema;
    const { $defs, $schema: _, ...schema } = written;
    Object.assign(schemas, $defs);
    return schema;
  };
  const error = jsonContent(schemaOf(errorBody, 'output'));
  const failures = { default: { description: 'the request was refused, or failed', ...error } };
  const paths: Record<string, Record<string, Part>> = {};
  for (const [name, operation] of Object.entries(OPERATIONS)) {
    const entry = describeOperation(name, operation, schemaOf);
    const responses = { ...entry.responses, ...failures };
    paths[operation.path] = {
      ...paths[operation.path],
      [operation.method]: { ...entry, responses },
    };
  }
  paths['/v1/runs/{run}/events'] = {
    get: { ...EVENTS, responses: { ...EVENTS.responses, ...failures } },
  };
  return {
    openapi: '3.1.0',
    info: { title: 'perdure', version: ownVersion(), description: 'Durable AI agents over HTTP.' },
    components: { securitySchemes: { key: { type: 'http', scheme: 'bearer' } }, schemas },
    security: [{ key: [] }],
    paths,
  };
}

interface JsonSchema extends Part {
  readonly properties?: Readonly<Record<string, Part>>;
  readonly required?: readonly string[];
}

type SchemaOf = (type: z.ZodType, io: 'input' | 'output') => JsonSchema;

function jsonContent(schema: Part): Part {
  return { content: { 'application/json': { schema } } };
}

function describeOperation(
  operationId: string,
  { method, path, summary, status, input, output }: Operation,
  schemaOf: SchemaOf,
) {
  const { properties = {}, required = [], ...rest } = schemaOf(input, 'input');
  const inPath = pathFields(path);
  const parameters = Object.entries(properties)
    .filter(([name]) => inPath.includes(name) || method === 'get')
    .map(([name, schema]) => ({
      name,
      in: inPath.includes(name) ? 'path' : 'query',
      required: required.includes(name),
      schema,
    }));
  const inBody = Object.entries(properties).filter(([name]) => !inPath.includes(name));
  const body = {
    ...rest,
    properties: Object.fromEntries(inBody),
    required: required.filter((name) => !inPath.includes(name)),
  };
  return {
    operationId,
    summary,
    ...(parameters.length > 0 && { parameters }),
    ...(method === 'post' && { requestBody: { required: true, ...jsonContent(body) } }),
    responses: {
      [status]: { description: summary, ...jsonContent(schemaOf(output, 'output')) },
    },
  };
}

const EVENTS = {
  operationId: 'streamEvents',
  summary:
    'Streams the events of a run: its history, and replies while they are written. Each event has an id; send the last one as Last-Event-ID to continue there.',
  parameters: [
    { name: 'run', in: 'path', required: true, schema: { type: 'string' } },
    {
      name: 'after',
      in: 'query',
      required: false,
      schema: { type: 'string' },
      description: 'the id of the last known event, or `now`',
    },
    { name: 'Last-Event-ID', in: 'header', required: false, schema: { type: 'string' } },
  ],
  responses: {
    200: {
      description: 'the events',
      content: { 'text/event-stream': { schema: { type: 'string' } } },
    },
    204: { description: 'the run has ended, and there is no event after this position' },
  },
};
