-- What the other files use.
CREATE EXTENSION snowflake;

-- Runs a statement: what it returned, or its error as SQLSTATE, message and hint.
CREATE FUNCTION outcome(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    result text;
    hint text;
BEGIN
    EXECUTE statement INTO result;
    RETURN coalesce(result, 'NULL');
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
    RETURN SQLSTATE || ': ' || SQLERRM || CASE hint WHEN '' THEN '' ELSE E'\n  ' || hint END;
END $$;

-- The extension is complete: every object has a comment, and the labels that planner and replicas rely on.
SELECT p.oid::regprocedure AS function,
       p.provolatile AS volatile, p.proparallel AS parallel, p.proisstrict AS strict,
       obj_description(p.oid, 'pg_proc') IS NOT NULL AS commented
FROM pg_depend d JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
WHERE d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'snowflake')
ORDER BY p.proname, p.oid::regprocedure::text COLLATE "C";

SELECT pg_describe_object(classid, objid, 0) FROM pg_depend
WHERE refobjid = (SELECT oid FROM pg_extension WHERE extname = 'snowflake')
  AND classid <> 'pg_proc'::regclass
  -- PostgreSQL 18 names the type's array here too.
  AND objid NOT IN (SELECT typarray FROM pg_type)
ORDER BY 1;

SELECT obj_description('snowflake_id_seq'::regclass) IS NOT NULL AND
       obj_description('snowflake_decoded'::regtype) IS NOT NULL AS commented;
SELECT extrelocatable, extversion FROM pg_extension WHERE extname = 'snowflake';
SELECT trusted, superuser FROM pg_available_extension_versions WHERE name = 'snowflake';
