import type { JsonObject } from '../json.js';

const ids = { type: 'array', items: { type: 'string' } };

/**
 * Returns the JSON schema of a whole plan of calls of these tools. `planProblem` checks the
 * constraints that a schema cannot express. If the server enforces the schema, naming the tools
 * keeps small models from inventing some.
 */
export const planSchema = (tools: readonly string[]): JsonObject => ({
  type: 'object',
  properties: {
    actions: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          id: { type: 'string', description: 'a1, a2, …' },
          tool: { type: 'string', enum: [...tools] },
          arguments: {
            type: 'object',
            description:
              'arguments that match the tool\'s schema; {"from": "a1", "path": "data.id"} stands for a result',
          },
          after: { ...ids, description: 'actions that must finish first' },
        },
        required: ['id', 'tool', 'arguments'],
      },
    },
    answer: { type: 'string', description: 'the answer, if there is nothing to do' },
  },
  required: ['actions'],
});
