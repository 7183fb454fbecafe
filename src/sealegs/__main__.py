"""`python -m sealegs`, and the command `sealegs`."""

import signal

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    # Until the command has begun, Ctrl-C ends the process without a traceback of what was being imported.
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from sealegs.cli import main

if __name__ == "__main__":
    main()
