import type { ToolDefinition } from '../core/definition/tool-definition.js';
import type { Tool } from './tool.js';

/** Whether calls of the tool may need an approval. */
export function wantsApproval({ approval = 'never' }: Pick<Tool, 'approval'>): boolean {
  return approval !== 'never';
}

/** Returns the part of a tool that is data: a run pins it at its start, and the model sees it. */
export function toToolDefinition(tool: Tool): ToolDefinition {
  return {
    name: tool.name,
    description: tool.description,
    parameters: tool.parameters,
    effect: tool.effect,
    ...(tool.ends && { ends: true as const }),
    ...(tool.repeat && { repeat: tool.repeat }),
    ...(tool.kind && { kind: tool.kind }),
    ...(tool.calls && { calls: tool.calls }),
    ...(tool.verify && { verify: true as const }),
    ...(wantsApproval(tool) && { approval: true as const }),
    ...(tool.undoMs !== undefined && { undoMs: tool.undoMs }),
    ...(tool.expiresMs !== undefined && { expiresMs: tool.expiresMs }),
    ...(tool.result && { result: tool.result }),
    timeoutMs: tool.timeoutMs,
    heartbeatMs: tool.heartbeatMs,
    attempts: tool.attempts,
  };
}
