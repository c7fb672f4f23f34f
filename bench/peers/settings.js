/** What all packages of this folder are given. */
export const INSTRUCTIONS = 'Do the steps.';
export const MAX_STEPS = 10_000;

export const TOOL = {
  name: 'work',
  description: 'does a step',
  parameters: {
    type: 'object',
    properties: {
      name: { type: 'string' },
      step: { type: 'integer' },
      part: { type: 'integer' },
      bytes: { type: 'integer' },
    },
    required: ['name', 'step', 'part', 'bytes'],
    additionalProperties: false,
  },
};
