import { isGrpcServiceError } from '@temporalio/client';

/** The gRPC status codes of a server's refusals. */
export const GRPC = {
  invalidArgument: 3,
  deadlineExceeded: 4,
  notFound: 5,
  alreadyExists: 6,
  permissionDenied: 7,
  resourceExhausted: 8,
  failedPrecondition: 9,
  aborted: 10,
  unimplemented: 12,
  unavailable: 14,
  unauthenticated: 16,
} as const;

/** The codes if a server has not answered; it may have done what was requested. */
const NO_ANSWER: readonly number[] = [GRPC.deadlineExceeded, GRPC.unavailable];

/**
 * Returns the gRPC status code of an error, or of its cause, since the SDK wraps some errors. Null if
 * neither has one.
 */
export function grpcCode(error: unknown): number | null {
  if (isGrpcServiceError(error)) return error.code;
  const cause = error instanceof Error ? error.cause : undefined;
  return isGrpcServiceError(cause) ? cause.code : null;
}

/** Returns whether a call failed because the server did not answer. */
export function isUnanswered(error: unknown): boolean {
  const code = grpcCode(error);
  return code !== null && NO_ANSWER.includes(code);
}
