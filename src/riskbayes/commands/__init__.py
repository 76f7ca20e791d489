"""The commands of the command line: a file `name.py` here with a click command `name` is `riskbayes name`.

Files are imported when their command is asked for, and import what is slow inside their functions, so that
`--help` is quick. Files whose name begins with an underscore hold what commands share. Another package adds
a command by an entry point of the group `riskbayes.commands`.
"""
