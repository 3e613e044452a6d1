// What makes the file beside csrc/ the library's own.
