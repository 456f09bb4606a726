"""reward-audit: how often does a judge used as a reward prefer the side with the lower verified reward?

The floors, and imports only go down:

    faces      the command line, the report, what a person sees
    pipeline   the story: simulate, judge, verify, score; or import
    doors      one for each outside thing: the database, foreign file formats
    statistics pure functions: rates and how sure they are
    verbs      pure functions: read a verdict, settle two orders, bucket a gap, name an outcome
    words      records, table definitions, errors: no behaviour of their own

Statistics, verbs and doors do not import each other.
"""

__version__ = "0.1.0"
