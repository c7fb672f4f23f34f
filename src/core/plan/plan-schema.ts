import type { JsonObject } from '../json.js';

const ids = { type: 'array', items: { type: 'string' } };

/** The JSON schema of a whole plan. What a schema cannot say, `planProblem` checks. */
export const PLAN_SCHEMA: JsonObject = {
  type: 'object',
  properties: {
    actions: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          id: { type: 'string', description: 'a1, a2, …' },
          tool: { type: 'string', description: "the tool's name" },
          arguments: {
            type: 'object',
            description:
              'under the tool\'s schema; {"$ref": "a1", "path": "data.id"} stands for a result',
          },
          after: { ...ids, description: 'actions that have to end first' },
        },
        required: ['id', 'tool', 'arguments'],
      },
    },
    answer: { type: 'string', description: 'the answer, if there is nothing to do' },
  },
  required: ['actions'],
};
