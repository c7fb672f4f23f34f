/**
 * Thrown by a tool that calls another system, such as an MCP server, if that system failed.
 *
 * - `unsent`: nothing has happened; the call may be repeated, whatever its effect
 * - `refused`: nothing has happened, but no retry will succeed: the credentials are wrong
 * - `unanswered`: the call was sent and may have happened; the outcome is unknown
 */
export class CallFault extends Error {
  override readonly name = 'CallFault';
  readonly kind: 'unsent' | 'refused' | 'unanswered';

  constructor(kind: CallFault['kind'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.kind = kind;
  }
}
